// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/refusal_count.h"

#include <gtest/gtest.h>

#include <string>

namespace tw::monitor {
namespace {

using event::Cause;
using namespace std::chrono_literals;

constexpr Instant kFirstRefusal{1h};

world::Event refusal(Duration after, Cause cause, const std::string& why = "why") {
  return {.at = kFirstRefusal + after, .why = why, .fact = event::Refuse{.cause = cause}};
}

TEST(RefusalCount, tells_the_first_of_a_cause_at_once_and_the_others_together_every_ten_seconds) {
  RefusalCount count;
  const auto first = count.take(refusal(0s, Cause::silent, "10.0.0.1:5: said nothing"));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->as<event::Refuse>()->count, 1U);
  for (int i = 1; i < 64'000; ++i)
    EXPECT_FALSE(count.take(refusal(i * 100us, Cause::silent, std::to_string(i))));
  EXPECT_TRUE(count.due(kFirstRefusal + 10s - 1ns).empty());
  const auto due = count.due(kFirstRefusal + 10s);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].as<event::Refuse>()->count, 63'999U);
  EXPECT_EQ(due[0].why, "63999");
  EXPECT_EQ(due[0].as<event::Refuse>()->cause, Cause::silent);
  EXPECT_FALSE(count.take(refusal(11s, Cause::silent)));
  EXPECT_TRUE(count.due(kFirstRefusal + 19s).empty());
  EXPECT_EQ(count.due(kFirstRefusal + 20s).size(), 1U);
}

TEST(RefusalCount, tells_at_once_again_after_ten_seconds_without_one) {
  RefusalCount count;
  EXPECT_TRUE(count.take(refusal(0s, Cause::nonsense)));
  EXPECT_TRUE(count.due(kFirstRefusal + 10s).empty());
  EXPECT_TRUE(count.take(refusal(11s, Cause::nonsense)));
}

TEST(RefusalCount, counts_each_cause_by_itself_and_not_what_has_none) {
  RefusalCount count;
  for (const Cause cause : {Cause::silent, Cause::slow, Cause::taken}) {
    EXPECT_TRUE(count.take(refusal(0s, cause)));
    EXPECT_FALSE(count.take(refusal(1s, cause)));
  }
  EXPECT_TRUE(count.take(refusal(0s, Cause::none)));
  const auto again = count.take(refusal(0s, Cause::none));
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->as<event::Refuse>()->count);
  EXPECT_EQ(count.due(kFirstRefusal + 10s).size(), 3U);
}

TEST(RefusalCount, cuts_long_words) {
  RefusalCount count;
  EXPECT_EQ(count.take(refusal(0s, Cause::dial, std::string(4096, 'x')))->why.size(), 400U);
}

TEST(RefusalCount, hands_out_the_rest_in_the_end) {
  RefusalCount count;
  EXPECT_TRUE(count.take(refusal(0s, Cause::crowded)));
  EXPECT_TRUE(count.rest().empty());
  EXPECT_TRUE(count.take(refusal(0s, Cause::crowded)));
  EXPECT_FALSE(count.take(refusal(1s, Cause::crowded)));
  EXPECT_EQ(count.rest().size(), 1U);
  EXPECT_TRUE(count.rest().empty());
}

}  // namespace
}  // namespace tw::monitor
