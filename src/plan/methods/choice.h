// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/input/job.h"
#include "plan/search/market_space.h"

/// What a published planner would choose for a job: its rule on the offers of today, not its tables.
namespace tw::plan {

enum class Method {
  deepvm,             ///< FLOPP x count x scaling factor within a price limit (DeepVM, CCGrid 2024)
  spotdnn,            ///< cheapest run of neighbours in time (spotDNN, IWQoS 2023)
  transient,          ///< cheapest transient cluster of one kind by the model of Li et al. (ICAC 2019)
  cost_first,         ///< most machines within a price limit, as DeepVM compares with
  performance_first,  ///< the fastest GPU within a price limit, as DeepVM compares with
};

/// As they are compared.
std::span<const Method> all_methods();

/// "deepvm", "cost-first".
std::string_view to_string(Method method);

/// An error lists the names.
Result<Method> parse_method(const std::string& name);

/// Whether it needs a price limit.
bool is_priced_per_hour(Method method);

struct MethodChoice {
  std::vector<int> counts;               ///< of the market's candidates
  std::string reason;                    ///< by what it chose, in its own terms
  std::vector<std::string> assumptions;  ///< inputs of it that nobody gave
};

struct MethodTask {
  const Job& job;
  const MarketSpace& market;  ///< with machines without a GPU, for DeepVM's tiers
  double usd_per_h = 0;       ///< price limit where the job has none
};

/// Each chooses within one site, as published, and the best site by its own measure is taken. An error tells
/// why there is no choice.
Result<MethodChoice> choose(Method method, const MethodTask& task);

/// The parts of it, one for each publication.
Result<MethodChoice> choose_by_deepvm(Method method, const MethodTask& task);
Result<MethodChoice> choose_by_spotdnn(const MethodTask& task);
Result<MethodChoice> choose_by_transient(const MethodTask& task);

/// Samples of a step of one GPU, for models that exchange gradients after each step: the job's, else an even
/// part of the target batch.
double step_samples(const Job& job);

/// So many of a candidate may be chosen: its quota alone, and all peers where the search may have none of it.
int most_of(const MarketSpace& market, std::size_t candidate);

/// In fp32, as they send them.
double gradient_mb(const MarketSpace& market);

}  // namespace tw::plan
