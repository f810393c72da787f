// SPDX-License-Identifier: Apache-2.0
#include "train/session/search/held_elsewhere.h"

#include <gtest/gtest.h>

#include "wire/frame.h"

namespace tw::train {
namespace {

using namespace std::chrono_literals;

constexpr Instant kAsked = Instant{} + 1h;
constexpr Duration kOfTheRun = 60s;
constexpr PeerId kAnn{2}, kBob{3};

/// A record of one history; a majority decided all of its samples.
wire::Record record_of(std::uint64_t samples, Round round) {
  wire::Record record;
  record.round = round;
  record.first_sample = samples;
  record.majority_samples = samples;
  return record;
}

struct Founder {
  Founder() { held.due(kAsked, {kAnn, kBob}); }

  void tells(PeerId peer, std::uint64_t samples, Round round = 1) {
    held.on_answer(peer, {record_of(samples, round)});
  }

  std::optional<PeerId> heir(std::uint64_t own_samples, Instant now = kAsked) {
    sync::LoadedCheckpoint own;
    own.image.record = record_of(own_samples, 1);
    const auto heir = held.heir(now, &own);
    EXPECT_EQ(held.awaited(), heir ? std::optional(heir->peer) : std::nullopt);
    return heir ? std::optional(heir->peer) : std::nullopt;
  }

  HeldElsewhere held{kOfTheRun};
};

TEST(HeldElsewhere, asks_each_peer_until_it_answers) {
  HeldElsewhere held(kOfTheRun);
  EXPECT_EQ(held.due(kAsked, {kAnn}), std::vector{kAnn});
  EXPECT_EQ(held.due(kAsked + 1s, {kAnn, kBob}), std::vector{kBob});
  EXPECT_EQ(held.due(kAsked + 2s, {kAnn, kBob}), std::vector{kAnn}) << "the question may be lost";
  EXPECT_TRUE(held.awaits_answers(kAsked + 2s));
  for (const PeerId peer : {kAnn, kBob}) held.on_answer(peer, {});
  EXPECT_TRUE(held.due(kAsked + 9s, {kAnn, kBob}).empty());
  EXPECT_FALSE(held.awaits_answers(kAsked + 9s));
}

TEST(HeldElsewhere, waits_for_an_answer_for_the_patience_of_the_run) {
  Founder founder;
  EXPECT_TRUE(founder.held.awaits_answers(kAsked + 59s));
  EXPECT_FALSE(founder.held.awaits_answers(kAsked + 60s));
}

TEST(HeldElsewhere, chooses_the_newest_history_whoever_holds_it) {
  Founder founder;
  EXPECT_EQ(founder.heir(100), std::nullopt);
  founder.tells(kAnn, 90, 500);
  EXPECT_EQ(founder.heir(100), std::nullopt) << "more rounds, fewer samples that a majority decided";
  founder.tells(kBob, 120);
  EXPECT_EQ(founder.heir(100), kBob);
  founder.tells(kAnn, 130);
  EXPECT_EQ(founder.heir(100), kAnn);
  EXPECT_TRUE(founder.held.heir(kAsked, nullptr)) << "the founder has none";
  founder.tells(kBob, 130);
  EXPECT_EQ(founder.heir(130), std::nullopt) << "all have the same";
}

TEST(HeldElsewhere, tells_the_chosen_one_again_and_gives_it_up_after_the_patience) {
  Founder founder;
  founder.tells(kAnn, 130);
  founder.tells(kBob, 120);
  const auto is_due = [&](Instant now) { return founder.held.heir(now, nullptr)->is_due; };
  EXPECT_TRUE(is_due(kAsked));
  EXPECT_FALSE(is_due(kAsked + 1s));
  EXPECT_TRUE(is_due(kAsked + 2s));
  EXPECT_EQ(founder.heir(100, kAsked + 59s), kAnn);
  EXPECT_EQ(founder.heir(100, kAsked + 60s), kBob);
  EXPECT_EQ(founder.heir(100, kAsked + 120s), std::nullopt);
}

TEST(HeldElsewhere, forgets_what_a_peer_said_that_is_gone_or_has_it_no_more) {
  Founder founder;
  founder.tells(kAnn, 130);
  founder.tells(kBob, 120);
  founder.held.due(kAsked + 3s, {kBob});
  EXPECT_EQ(founder.heir(100), kBob);
  founder.held.on_answer(kBob, {});
  EXPECT_EQ(founder.heir(100), std::nullopt) << "it could not read it";
}

}  // namespace
}  // namespace tw::train
