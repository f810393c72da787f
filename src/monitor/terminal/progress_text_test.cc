// SPDX-License-Identifier: Apache-2.0
#include "monitor/terminal/progress_text.h"

#include <gtest/gtest.h>

namespace tw::monitor {
namespace {

using world::Phase;
using namespace std::chrono_literals;

world::Event commit(Round round, Duration at, std::uint64_t samples_total) {
  return {.at = Instant(at),
          .round = round,
          .fact = event::Commit{.samples = 128,
                                .samples_total = samples_total,
                                .members = 4,
                                .calc_s = 0.09,
                                .comm_s = 0.012,
                                .loss = 0.31}};
}

class Terminal : public testing::Test {
 protected:
  void SetUp() override { progress.line_for({.at = Instant(1s), .round = 1, .fact = event::Accumulate{}}); }

  std::string show(const world::Event& event) { return progress.line_for(event).value_or("(nothing)"); }

  ProgressText progress;
};

TEST_F(Terminal, shows_rounds_every_two_seconds_with_the_speed_between_the_lines) {
  EXPECT_EQ(show(commit(1, 2s, 512)), "round 1  4 peers  loss 0.310  calc 0.09 s  comm 0.01 s");
  EXPECT_EQ(show(commit(2, 3s, 1024)), "(nothing)");
  EXPECT_EQ(show(commit(11, 4s, 10752)),
            "round 11  4 peers  5120 samples/s  loss 0.310  calc 0.09 s  comm 0.01 s");
}

TEST_F(Terminal, shows_what_the_program_measured_of_which_round) {
  EXPECT_EQ(show({.round = 40, .fact = event::Evaluate{.name = "accuracy", .value = 0.9342}}),
            "round 40  evaluated: accuracy 0.9342");
  EXPECT_EQ(show({.round = 40, .fact = event::Evaluate{.name = "a\nround 41  evaluated: b", .value = 1}}),
            "round 40  evaluated: a\\nround 41  evaluated: b 1");
}

TEST_F(Terminal, shows_losses_at_once_and_each_once) {
  world::Event lost{.at = Instant(2s),
                    .round = 7,
                    .peer = PeerId{2},
                    .why = "link closed",
                    .fact = event::Lost{.silent_s = 0.25}};
  EXPECT_EQ(show(lost), "round 7  lost peer 2, silent for 0.25 s: link closed");
  EXPECT_EQ(show(lost), "(nothing)");
  lost.round = 8;
  lost.why = "silent for 0.25 s";
  EXPECT_EQ(show(lost), "round 8  lost peer 2: silent for 0.25 s");
}

TEST_F(Terminal, names_whom_it_waits_for_and_why) {
  EXPECT_EQ(show({.peer = PeerId{3},
                  .why = "waiting for peer 3: its contribution",
                  .fact = event::Wait{.seconds = 5.2}}),
            "waiting for peer 3: its contribution (5 s)");
  EXPECT_EQ(
      show({.peer = PeerId{3}, .why = "no leases go out before it has the state", .fact = event::Wait{}}),
      "waiting for peer 3: no leases go out before it has the state");
  EXPECT_EQ(show({.peer = PeerId{3}, .why = "peer 3 is slow", .fact = event::Wait{}}), "peer 3 is slow");
  EXPECT_EQ(show({.peer = PeerId{3}, .why = "peer 31 is slow", .fact = event::Wait{}}),
            "waiting for peer 3: peer 31 is slow");
}

TEST_F(Terminal, says_how_long_a_transfer_still_takes) {
  const auto waits = [&](std::uint64_t done, std::uint64_t total) {
    return show({.why = "the state", .fact = event::Wait{.seconds = 10, .done = done, .total = total}});
  };
  EXPECT_EQ(waits(1e8, 5e8), "the state (10 s), about 40 s to go");
  EXPECT_EQ(waits(0, 5e8), "the state (10 s)");
  EXPECT_EQ(waits(2, 4), "the state (10 s)") << "peers come when they come";
}

TEST_F(Terminal, says_who_was_turned_away_and_what_came_to_nothing) {
  EXPECT_EQ(show({.peer = PeerId{3}, .why = "another run", .fact = event::Refuse{}}),
            "turned away peer 3: another run");
  EXPECT_EQ(show({.round = 3,
                  .why = "gives a sample to another peer: a.tar: 404",
                  .fact = event::Reissue{.cause = event::Cause::sample}}),
            "round 3  gives a sample to another peer: a.tar: 404");
  EXPECT_EQ(show({.round = 3, .why = "1-4", .fact = event::Reissue{.microbatches = 4}}), "(nothing)");
  EXPECT_EQ(show({.round = 3, .why = "a.tar: 000001: no JPEG", .fact = event::Skip{}}),
            "round 3  goes on without a sample: a.tar: 000001: no JPEG");
  EXPECT_EQ(show({.why = "10.0.0.5:7000: connection refused", .fact = event::Refuse{}}),
            "no link: 10.0.0.5:7000: connection refused");
  EXPECT_EQ(show({.why = "10.0.0.5:7000: silent", .fact = event::Refuse{.count = 640}}),
            "no link: 10.0.0.5:7000: silent (640 of this kind)");
}

TEST_F(Terminal, tells_resuming_from_taking_the_state_of_others) {
  EXPECT_EQ(show({.round = 40,
                  .why = "from checkpoint",
                  .fact = event::Restore{.digest = "00ff", .cause = event::Cause::checkpoint}}),
            "resumed from round 40");
  EXPECT_EQ(show({.round = 0, .why = "two rounds behind", .fact = event::Restore{}}),
            "takes the state of others: two rounds behind");
  EXPECT_EQ(
      show({.round = 40, .why = "from other peers", .fact = event::Restore{.digest = "00ff", .took_s = 0.5}}),
      "took the state of round 40 from other peers in 0.50 s");
}

TEST_F(Terminal, says_warnings_instead_of_the_events_that_they_are_about) {
  EXPECT_EQ(show({.round = 20, .why = "round 20: no checkpoint, training goes on", .fact = event::Warn{}}),
            "round 20: no checkpoint, training goes on");
  EXPECT_EQ(show({.round = 20, .why = "disk full", .fact = event::Checkpoint{.cause = event::Cause::failed}}),
            "(nothing)");
  EXPECT_EQ(show({.round = 40, .fact = event::Restore{.digest = "00ff", .cause = event::Cause::anew}}),
            "(nothing)");
}

TEST_F(Terminal, says_who_has_the_work_of_a_peer_that_leaves) {
  EXPECT_EQ(show({.round = 7,
                  .peer = PeerId{1},
                  .fact = event::Handover{.bytes = 1e8, .took_s = 1.9, .samples = 512, .round_left_s = 41}}),
            "round 7  leaves its work to peer 1: 512 samples in 1.90 s; the round has 41.0 s to go");
}

TEST_F(Terminal, shows_who_comes_and_goes) {
  EXPECT_EQ(show({.round = 12, .peer = PeerId{4}, .fact = event::Join{}}), "round 12  peer 4 joined");
  EXPECT_EQ(show({.round = 13, .peer = PeerId{4}, .fact = event::Leave{}}), "round 13  peer 4 leaves");
  EXPECT_EQ(show({.round = 13, .fact = event::Scatter{}}), "(nothing)");
}

}  // namespace
}  // namespace tw::monitor
