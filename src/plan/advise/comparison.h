// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/advise/recommendation.h"
#include "plan/methods/choice.h"

/// What published planners choose for a job, priced and timed by the same model as our own plan.
namespace tw::plan {

struct MethodRow {
  Method method{};
  std::optional<Option> option;  ///< nothing: it has no choice
  std::string reason;            ///< by what it chose, or why it did not
};

struct Comparison {
  Recommendation ours;
  double usd_per_h = 0;  ///< price limit of the methods that have one
  std::vector<MethodRow> rows;
  std::vector<std::string> assumptions;  ///< of the methods
};

/// The market has machines without a GPU (MarketInputs::idle_anchors). An error: there is no plan of ours.
Result<Comparison> compare(const Job& job, const MarketSpace& market, std::int64_t now_unix_s);

/// The method's choice as a plan like any other. An error tells why it has none.
Result<Recommendation> recommend_by(Method method, const Job& job, const MarketSpace& market,
                                    std::int64_t now_unix_s);

/// The table of `tw plan --compare`, and its JSON (docs/planner.md).
std::string to_text(const Job& job, const Comparison& comparison);
std::string to_json(const Job& job, const Comparison& comparison);

}  // namespace tw::plan
