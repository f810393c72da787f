// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/board_checkers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "sim/checkers/test_story.h"
#include "wire/limits.h"

namespace tw::sim {
namespace {

using world::Phase;

/// Three peers commit round 1 together. Then Eve, which had lost the others, commits a round 1 of her own.
struct TwoBoards {
  explicit TwoBoards(const std::string& record_of_eve) : checker(kRules) {
    for (const PeerId peer : {kAnn, kBob, kEve})
      checker.on_event(peer, {.at = at(0), .fact = event::Start{}});
    for (const PeerId peer : {kAnn, kBob}) commits(peer, 1, {kAnn, kBob, kEve}, "aa");
    commits(kEve, 20, {kEve}, record_of_eve);
    checker.on_end({});
  }

  static Instant at(int seconds) { return Instant{} + std::chrono::seconds(1000 + seconds); }

  void commits(PeerId peer, int seconds, std::vector<PeerId> contributors, const std::string& record) {
    checker.on_event(peer, {.at = at(seconds),
                            .round = 1,
                            .fact = event::Commit{.digest = record,
                                                  .peers = std::move(contributors),
                                                  .samples = 4,
                                                  .samples_total = 12,
                                                  .members = 3,
                                                  .calc_s = 1,
                                                  .comm_s = 1}});
  }

  bool blames_round() const {
    return std::ranges::any_of(checker.violations(), [](const Violation& violation) {
      return violation.message.find("round 1: ") != std::string::npos;
    });
  }

  BoardsAgree checker;
};

/// Ann loses peers in round 1, and tells of it. Long after it has told its last of that round its log has one
/// more.
std::string verdict_on_lost(std::uint64_t told, bool one_more) {
  BoardsAgree checker(kRules);
  const auto take = [&](int seconds, Phase phase, Round round, std::optional<PeerId> lost = {}) {
    world::Event event{Instant{} + std::chrono::seconds(seconds), round, lost, "", world::fact_of(phase)};
    if (auto* commit = std::get_if<event::Commit>(&event.fact)) commit->digest = "aa";
    checker.on_event(kAnn, event);
  };
  take(1000, Phase::start, 0);
  for (std::uint64_t peer = 0; peer < told; ++peer) take(1001, Phase::lost, 1, PeerId{100 + peer});
  take(1002, Phase::commit, 1);
  take(9000, Phase::commit, 2);
  if (one_more) take(9001, Phase::lost, 1, PeerId{99});
  checker.on_end({});
  return checker.violations().empty() ? "" : checker.violations().front().message;
}

TEST(ReportAddsUp, fires_when_samples_are_missing_that_no_round_left_to_the_next) {
  const auto verdict = [](std::uint64_t samples_total, std::uint64_t carried, bool last = true) {
    Judged<ReportAddsUp> j(kRules);
    const wire::Record one = j.story.next(j.story.genesis(), {1, 1});
    wire::Record two = j.story.next(one, {2, 2});
    two.last = last;
    for (const wire::Record& record : {j.story.genesis(), one, two}) j.commit(kAnn, record);
    for (const Round round : {1, 2}) {
      const wire::Record& record = round == 1 ? one : two;
      j.checker.on_event(kAnn, {.at = TwoBoards::at(static_cast<int>(round)),
                                .round = round,
                                .fact = event::Commit{.digest = to_string(digest_of(record)),
                                                      .parent = to_string(record.parent),
                                                      .samples_total = round == 1 ? 20 : samples_total,
                                                      .carried = round == 1 ? 0 : carried}});
    }
    j.checker.on_end({});
    return j.story.verdict();
  };
  EXPECT_EQ(verdict(40, 0), "");
  EXPECT_EQ(verdict(32, 8), "");
  EXPECT_EQ(verdict(32, 0), "the report has 32 samples and 0 carried in 2 rounds of 40 in all");
  EXPECT_EQ(verdict(32, 0, false), "") << "the run goes on";
}

TEST(BoardsAgree, fires_when_a_peer_does_not_tell_of_one_that_it_lost_unless_it_lost_more_than_it_can_tell) {
  EXPECT_EQ(verdict_on_lost(wire::kMostLeftOut, false), "");
  EXPECT_EQ(verdict_on_lost(wire::kMostLeftOut - 1, true),
            "round 1: 7 left out as peers report, 8 by the logs");
  EXPECT_EQ(verdict_on_lost(wire::kMostLeftOut + 3, false), "");
}

TEST(BoardsAgree, fires_when_peers_tell_another_round_than_the_logs) {
  EXPECT_TRUE(TwoBoards("aa").blames_round());
}

TEST(BoardsAgree, leaves_a_round_alone_that_two_histories_have) {
  EXPECT_FALSE(TwoBoards("bb").blames_round());
}

}  // namespace
}  // namespace tw::sim
