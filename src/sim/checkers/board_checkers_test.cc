// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/board_checkers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/checkers/test_story.h"

namespace tw::sim {
namespace {

using world::Phase;

/// Three peers commit round 1 together. Then Eve, which had lost the others, commits a round 1 of her own.
struct TwoBoards {
  explicit TwoBoards(const std::string& record_of_eve) : checker(kRules) {
    for (const PeerId peer : {kAnn, kBob, kEve}) checker.on_event(peer, {at(0), Phase::start});
    for (const PeerId peer : {kAnn, kBob}) commits(peer, 1, {kAnn, kBob, kEve}, "aa");
    commits(kEve, 20, {kEve}, record_of_eve);
    checker.on_end({});
  }

  static Instant at(int seconds) { return Instant{} + std::chrono::seconds(1000 + seconds); }

  void commits(PeerId peer, int seconds, std::vector<PeerId> contributors, const std::string& record) {
    world::Event event{at(seconds), Phase::commit, 1};
    event.digest = record;
    event.peers = std::move(contributors);
    event.numbers = {{"samples", 4}, {"samples_total", 12}, {"members", 3}, {"calc_s", 1}, {"comm_s", 1}};
    checker.on_event(peer, event);
  }

  bool blames_round() const {
    return std::ranges::any_of(checker.violations(), [](const Violation& violation) {
      return violation.message.find("round 1: ") != std::string::npos;
    });
  }

  BoardsAgree checker;
};

TEST(BoardsAgree, fires_when_peers_tell_another_round_than_the_logs) {
  EXPECT_TRUE(TwoBoards("aa").blames_round());
}

TEST(BoardsAgree, leaves_a_round_alone_that_two_histories_have) {
  EXPECT_FALSE(TwoBoards("bb").blames_round());
}

}  // namespace
}  // namespace tw::sim
