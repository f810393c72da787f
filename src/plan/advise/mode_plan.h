// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "plan/advise/recommendation.h"

/// A plan of machines together with the mode, codec and batch that a job leaves open.
namespace tw::plan {

struct ModePlan {
  Job job;  ///< with what was chosen
  MarketSpace market;
  Recommendation plan;  ///< with mode_reasons
};

struct ModePlanInputs {
  const Job& job;
  const Workload& workload;  ///< with the job's model
  const Knowledge& knowledge;
  std::function<Result<MarketSpace>(const Job&)> market_of;  ///< of the job in another mode, codec and batch
  std::int64_t now_unix_s = 0;
  SearchTold told{};
};

/// Goes from each choice (choices_of) to later ones whose best plan is better by more than kAcceptedWait in
/// USD or hours, as the goal is, or which alone keep the limits. For where averaging is slow, few machines
/// are best in sync, and many in another mode. It plans machines for what it arrives at. Where a later one
/// gains more on these machines (choose_mode), it plans for that one, and so on. An enlarged choice gets the
/// fewest samples a round, by doublings, whose best plan is nearly as good as that of the most. An error: as
/// of recommend, of the last choice.
Result<ModePlan> recommend_with_mode(const ModePlanInputs& inputs);

}  // namespace tw::plan
