// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/budget.h"

#include <fmt/format.h>

#include "monitor/terminal/terminal_numbers.h"

namespace tw::monitor {

std::optional<BudgetWord> Budget::watch(const Money& money) {
  const std::optional<double> spent = money.usd();
  if (!usd_ || !spent || told_ == Told::reached) return std::nullopt;
  const bool reached = *spent >= *usd_;
  if (!reached && (*spent < kWarnShare * *usd_ || told_ == Told::near)) return std::nullopt;
  told_ = reached ? Told::reached : Told::near;
  const std::string unpriced =
      money.is_priced() ? ""
                        : fmt::format("; the price of {:.2f} of {:.2f} machine hours is not known",
                                      money.machine_hours - money.priced_hours, money.machine_hours);
  const std::string end =
      reached && drains_ ? ", and ends with the round under way (budget_action: drain)" : "";
  return BudgetWord{
      .usd = *spent,
      .budget_usd = *usd_,
      .reached = reached,
      .text = fmt::format("the run has cost {} USD, {} its budget of {} USD{}{}", usd_number(*spent),
                          reached ? "all of" : "more than 80 % of", usd_number(*usd_), end, unpriced)};
}

}  // namespace tw::monitor
