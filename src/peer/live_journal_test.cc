// SPDX-License-Identifier: Apache-2.0
#include "peer/live_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/session/test_clock.h"

namespace tw::peer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr PeerId kSelf{1};
constexpr Round kLast = 5;

/// The journals of this peer and of others, which tell it where they stand.
class LiveJournals : public testing::Test {
 protected:
  void SetUp() override { own.take({.fact = event::Start{}}); }

  static event::Commit committed(bool last) { return {.samples = 8, .last = last}; }

  /// The peer of this journal has these parameters after the round.
  static void has(LiveJournal& journal, Round round, const std::string& digest, bool last) {
    journal.take({.round = round, .fact = committed(last)});
    journal.take({.round = round, .fact = event::Apply{.digest = digest}});
  }

  void hears_of(PeerId other, Round round, const std::string& digest) {
    LiveJournal theirs(other, clock, {}, nullptr);
    theirs.take({.fact = event::Start{}});
    has(theirs, round, digest, round == kLast);
    own.on_status(other, theirs.status());
  }

  train::HandClock clock;
  LiveJournal own{kSelf, clock, {}, nullptr};
};

TEST_F(LiveJournals, name_the_peers_whose_parameters_differ_at_the_end_of_the_run) {
  has(own, kLast, "00aa", true);
  EXPECT_EQ(own.difference_at_the_end(), "") << "nobody else told of any";
  hears_of(PeerId{2}, kLast, "00aa");
  EXPECT_EQ(own.difference_at_the_end(), "");
  hears_of(PeerId{3}, kLast, "00bb");
  EXPECT_THAT(own.difference_at_the_end(),
              AllOf(HasSubstr("parameters of this peer differ after the last round from those of peer 3:"),
                    HasSubstr("tw report compares all peers")));
  hears_of(PeerId{4}, kLast, "00cc");
  EXPECT_THAT(own.difference_at_the_end(), HasSubstr("from those of peer 3, 4:"));
}

TEST_F(LiveJournals, compare_nothing_but_the_parameters_after_the_last_round) {
  has(own, kLast - 1, "00aa", false);
  hears_of(PeerId{2}, kLast - 1, "00bb");
  EXPECT_EQ(own.difference_at_the_end(), "") << "the run goes on";
  has(own, kLast, "00cc", true);
  EXPECT_EQ(own.difference_at_the_end(), "") << "the other one has not come so far";
}

}  // namespace
}  // namespace tw::peer
