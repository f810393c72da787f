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

/// The choice of a published planner for a job: its rule on today's offers, not its tables.
namespace tw::plan {

enum class Method {
  deepvm,             ///< FLOPP x count x scaling factor within a price limit (DeepVM, CCGrid 2024)
  spotdnn,            ///< cheapest run of neighbours that is in time (spotDNN, IWQoS 2023)
  transient,          ///< cheapest transient cluster of one kind by the model of Li et al. (ICAC 2019)
  cost_first,         ///< most machines within a price limit, a baseline of DeepVM
  performance_first,  ///< the fastest GPU within a price limit, a baseline of DeepVM
};

/// In the order of comparisons.
std::span<const Method> all_methods();

/// "deepvm", "cost-first".
std::string_view to_string(Method method);

/// An error lists the names.
Result<Method> parse_method(const std::string& name);

/// True if the method needs a price limit.
bool is_priced_per_hour(Method method);

struct MethodChoice {
  std::vector<int> counts;               ///< of the market's candidates
  std::string reason;                    ///< the criterion of the choice, in the method's terms
  std::vector<std::string> assumptions;  ///< inputs of the method that the job lacks
};

struct MethodTask {
  const Job& job;
  const MarketSpace& market;  ///< with machines without a GPU, for DeepVM's tiers
  double usd_per_h = 0;       ///< price limit if the job has none
};

/// Each method chooses within one site, as published; the best site by its own measure wins. An error says
/// why there is no choice.
Result<MethodChoice> choose(Method method, const MethodTask& task);

/// Its parts, one for each publication.
Result<MethodChoice> choose_by_deepvm(Method method, const MethodTask& task);
Result<MethodChoice> choose_by_spotdnn(const MethodTask& task);
Result<MethodChoice> choose_by_transient(const MethodTask& task);

/// Samples per step of one GPU, for models that exchange gradients after each step: the job's value, else an
/// even part of the target batch.
double step_samples(const Job& job);

/// Upper limit of a candidate's count: its own, or all peers if the search may not use it; within its quota.
int most_of(const MarketSpace& market, std::size_t candidate);

/// Gradient size in fp32, as these methods send it.
double gradient_mb(const MarketSpace& market);

}  // namespace tw::plan
