// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "monitor/board/board.h"

namespace tw::monitor {

/// A message about a budget.
struct BudgetWord {
  double usd = 0;         ///< spent
  double budget_usd = 0;  ///< the budget
  bool reached = false;   ///< false: 80 % of it are spent
  std::string text;       ///< for people, one line
};

/// Gives one message when a run has cost 80 % of its budget, and one when it has cost all of it.
class Budget {
 public:
  /// drains: the run ends when it has cost all of it.
  explicit Budget(std::optional<double> usd, bool drains = false) : usd_(usd), drains_(drains) {}

  bool is_set() const { return usd_.has_value(); }

  std::optional<BudgetWord> watch(const Money& money);

  static constexpr double kWarnShare = 0.8;

 private:
  enum class Told { nothing, near, reached };

  std::optional<double> usd_;
  bool drains_;
  Told told_ = Told::nothing;
};

}  // namespace tw::monitor
