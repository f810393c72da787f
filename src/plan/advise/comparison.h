// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/advise/recommendation.h"
#include "plan/methods/choice.h"

/// Choices of published planners for a job, priced and timed by the same model as our own plan.
namespace tw::plan {

struct MethodRow {
  Method method{};
  std::optional<Option> option;  ///< nothing: the method has no choice
  std::string reason;            ///< the criterion of the choice, or why there is none
};

struct Comparison {
  Recommendation ours;
  double usd_per_h = 0;  ///< price limit of the methods that have one
  std::vector<MethodRow> rows;
  std::vector<std::string> assumptions;  ///< of the methods
};

/// The market includes machines without a GPU (MarketInputs::idle_anchors). An error: there is no own plan.
Result<Comparison> compare(const Job& job, const MarketSpace& market, std::int64_t now_unix_s);

/// The method's choice as an ordinary plan, also where it misses limits of the job, which its `misses` says.
/// An error says why there is none.
Result<Recommendation> recommend_by(Method method, const Job& job, const MarketSpace& market,
                                    std::int64_t now_unix_s);

/// The table of `tw plan --compare`, and its JSON (docs/planner.md).
std::string to_text(const Job& job, const Comparison& comparison);
std::string to_json(const Job& job, const Comparison& comparison);

}  // namespace tw::plan
