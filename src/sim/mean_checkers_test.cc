// SPDX-License-Identifier: Apache-2.0
#include "sim/mean_checkers.h"

#include <gtest/gtest.h>

#include "sim/test_story.h"

namespace tw {
namespace {

TEST(I4, accepts_the_reference_mean_and_fires_when_one_value_is_stale) {
  ExactMean checker(kRules);
  Story story(checker);
  Record record = story.next(story.genesis(), {1, 1});
  story.commit(kAnn, record);
  EXPECT_EQ(story.verdict(), "");
  record.mean.low ^= 1;
  story.commit(kBob, record);
  EXPECT_NE(story.verdict().find("round 1: the recorded mean is"), std::string::npos);
}

TEST(I4, fires_when_the_recorded_contributors_are_not_those_of_the_mean) {
  ExactMean checker(kRules);
  Story story(checker);
  Record record = story.next(story.genesis(), {1, 1});
  record.contributors = {{kAnn, 0, 8, RangeSet({0, 2})}, {kBob, 0, 12, RangeSet({2, 3})}};
  story.commit(kAnn, record);
  EXPECT_EQ(checker.violations().size(), 1U);
}

}  // namespace
}  // namespace tw
