// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/budget.h"

#include <gtest/gtest.h>

namespace tw::monitor {
namespace {

Money spent(std::optional<double> machines_usd, double egress_usd = 0) {
  return {.machine_hours = 2, .priced_hours = 2, .machines_usd = machines_usd, .egress_usd = egress_usd};
}

TEST(Budget, speaks_once_at_eighty_percent_and_once_at_the_end) {
  Budget budget(10);
  EXPECT_FALSE(budget.watch(spent(7.9)));
  const auto near = budget.watch(spent(7.5, 0.5));
  ASSERT_TRUE(near);
  EXPECT_FALSE(near->reached);
  EXPECT_EQ(near->text, "the run has cost 8.00 USD, more than 80 % of its budget of 10.00 USD");
  EXPECT_FALSE(budget.watch(spent(9.9)));
  const auto reached = budget.watch(spent(10));
  ASSERT_TRUE(reached);
  EXPECT_TRUE(reached->reached);
  EXPECT_EQ(reached->text, "the run has cost 10.00 USD, all of its budget of 10.00 USD");
  EXPECT_FALSE(budget.watch(spent(11)));
}

TEST(Budget, says_once_it_is_spent_that_it_ends_the_run) {
  Budget budget(10, true);
  EXPECT_EQ(budget.watch(spent(8))->text,
            "the run has cost 8.00 USD, more than 80 % of its budget of 10.00 USD");
  EXPECT_EQ(budget.watch(spent(10))->text,
            "the run has cost 10.00 USD, all of its budget of 10.00 USD, and ends with the round under "
            "way (budget_action: drain)");
}

TEST(Budget, has_the_digits_that_count) {
  EXPECT_EQ(Budget(0.02).watch(spent(0.0163)).value().text,
            "the run has cost 0.0163 USD, more than 80 % of its budget of 0.0200 USD");
  EXPECT_EQ(Budget(2000).watch(spent(2000)).value().text,
            "the run has cost 2000 USD, all of its budget of 2000 USD");
}

TEST(Budget, says_nothing_without_a_limit_or_a_price) {
  EXPECT_FALSE(Budget(std::nullopt).watch(spent(100)));
  EXPECT_FALSE(Budget(10).watch(spent(std::nullopt)));
}

TEST(Budget, says_which_hours_have_no_price) {
  Budget budget(10);
  Money money = spent(10);
  money.machine_hours = 3;
  EXPECT_EQ(budget.watch(money)->text,
            "the run has cost 10.00 USD, all of its budget of 10.00 USD; the price of 1.00 of 3.00 machine "
            "hours is not known");
  budget = Budget(10);
  money.machine_hours = 2.001;
  EXPECT_TRUE(budget.watch(money)->text.ends_with("budget of 10.00 USD")) << "less than a thousandth";
}

}  // namespace
}  // namespace tw::monitor
