// SPDX-License-Identifier: Apache-2.0
#include "sync/unusable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sync/checkpoint.h"

namespace tw::sync {
namespace {

using testing::ElementsAre;

TEST(Unusable, files_of_one_reason_have_one_line) {
  const std::string other = R"(it is of another run: there "batch=16", here "batch=32")";
  EXPECT_THAT(lines_by_reason({{"6.tw", 6, other}, {"5.tw", 5, "it is cut off"}, {"4.tw", 4, other}}),
              ElementsAre("6.tw, 4.tw: " + other, "5.tw: it is cut off"));
  EXPECT_THAT(
      lines_by_reason({{"9.tw", 9, "old"}, {"8.tw", 8, "old"}, {"7.tw", 7, "old"}, {"6.tw", 6, "old"}}),
      ElementsAre("9.tw, 8.tw, 7.tw and 1 more: old"));
}

TEST(Unusable, those_from_the_round_on_are_passed_over_and_damaged_ones_go) {
  const UnusableCheckpoint damaged{"7.tw", 7, "it is cut off", true}, older{"5.tw", 5, "it is cut off", true};
  EXPECT_THAT(passed_over({{"9.tw", 9, "it has format 7"}, damaged, older}, 6),
              ElementsAre("9.tw: it has format 7",
                          "7.tw: it is cut off; the file is removed once the run is past its round"));
}

std::string between(const std::string& there, const std::string& here) {
  return difference({.facts = there}, {.facts = here});
}

TEST(Unusable, a_fact_that_changed_is_shown_beside_what_it_is_here) {
  EXPECT_EQ(between("model=a\nbatch=512\nseed=1", "model=a\nbatch=64\nseed=2"),
            R"(there "batch=512", here "batch=64")");
  EXPECT_EQ(between("group 0: a (1) float32\ngroup 0: b (2) float32",
                    "group 0: b (3) float32\ngroup 0: a (1) float32"),
            R"(there "group 0: b (2) float32", here "group 0: b (3) float32")");
}

TEST(Unusable, a_fact_that_is_missing_is_named_as_missing) {
  EXPECT_EQ(between("seed=1\nupdates: 256", "seed=1\nscheduler: Cosine\nupdates: 256"),
            R"(there nothing, here "scheduler: Cosine")");
  EXPECT_EQ(between("seed=1\ndata: 100 samples\noptimizer: adam", "seed=1\noptimizer: adam"),
            R"(there "data: 100 samples", here nothing)");
}

TEST(Unusable, facts_in_another_order_differ_in_the_first_place) {
  EXPECT_EQ(between("a\nb", "b\na"), R"(there "a", here "b")");
  EXPECT_EQ(between("a\nb", "a\nb"), "the number of its parameters differs");
}

}  // namespace
}  // namespace tw::sync
