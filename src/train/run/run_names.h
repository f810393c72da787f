// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "train/run/run.h"

/// The names that files give to choices of a run, in the order of the enum constants.
namespace tw::train {

using Names = std::span<const std::string_view>;

inline constexpr std::string_view kOptimizerNames[] = {"sgd", "adam", "adamw", "lamb"};
inline constexpr std::string_view kModeNames[] = {"sync", "delayed", "local", "streaming"};
inline constexpr std::string_view kOuterStepNames[] = {"mean", "nesterov"};
inline constexpr std::string_view kRoundingNames[] = {"nearest", "stochastic"};
inline constexpr std::string_view kBudgetActionNames[] = {"warn", "drain"};

inline Names names_of(OptimizerKind) { return kOptimizerNames; }

inline Names names_of(Rounding) { return kRoundingNames; }

inline Names names_of(Mode) { return kModeNames; }

inline Names names_of(OuterStep) { return kOuterStepNames; }

inline Names names_of(BudgetAction) { return kBudgetActionNames; }

inline std::string_view name_of(OptimizerKind kind) {
  return kOptimizerNames[static_cast<std::size_t>(kind)];
}

inline std::string_view name_of(Mode mode) { return kModeNames[static_cast<std::size_t>(mode)]; }

}  // namespace tw::train
