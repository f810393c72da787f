// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/price_age.h"

#include <gtest/gtest.h>

namespace tw::cli {
namespace {

constexpr int kUndated = 1 << 20;
constexpr std::int64_t kDay_s = 86400, kNow_s = 20'000 * kDay_s;

/// A plan that takes `counts` machines of offers whose prices are so many days old; kUndated: of no date.
std::string line_of(const std::vector<int>& days, const std::vector<int>& counts) {
  plan::MarketSpace market;
  for (const int age : days) {
    plan::Candidate one;
    one.offer.as_of_unix_s = age == kUndated ? 0 : kNow_s - age * kDay_s;
    market.candidates.push_back(one);
  }
  plan::Recommendation plan;
  plan.chosen.counts = counts;
  return price_age_line(market, plan, kNow_s);
}

TEST(PriceAge, names_the_oldest_chosen_price_and_the_command) {
  EXPECT_EQ(line_of({3, 1307, 2000}, {2, 1, 0}),
            "The oldest of these prices is 1307 days old; `tw catalog update` fetches today's.\n");
}

TEST(PriceAge, is_silent_on_fresh_and_undated_prices) { EXPECT_EQ(line_of({0, kUndated, 9}, {1, 1, 0}), ""); }

TEST(PriceAge, names_a_date_that_this_clock_has_not_reached) {
  EXPECT_EQ(line_of({0, -160, -900}, {1, 1, 0}),
            "A price is dated 160 days ahead of this clock; check the clock, and as_of of the offers.\n");
}

}  // namespace
}  // namespace tw::cli
