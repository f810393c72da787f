// SPDX-License-Identifier: Apache-2.0
#include "plan/methods/choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tw::plan {
namespace {

constexpr std::array kMethods{Method::deepvm, Method::spotdnn, Method::transient, Method::cost_first,
                              Method::performance_first};
constexpr std::array<std::string_view, kMethods.size()> kNames{"deepvm", "spotdnn", "transient", "cost-first",
                                                               "performance-first"};

}  // namespace

std::span<const Method> all_methods() { return kMethods; }

std::string_view to_string(Method method) { return kNames[static_cast<std::size_t>(method)]; }

Result<Method> parse_method(const std::string& name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found != kNames.end()) return kMethods[static_cast<std::size_t>(found - kNames.begin())];
  return Error{fmt::format("{}: expected one of {}", name, fmt::join(kNames, ", "))};
}

bool is_priced_per_hour(Method method) { return method != Method::spotdnn && method != Method::transient; }

Result<MethodChoice> choose(Method method, const MethodTask& task) {
  if (method == Method::spotdnn) return choose_by_spotdnn(task);
  return method == Method::transient ? choose_by_transient(task) : choose_by_deepvm(method, task);
}

double step_samples(const Job& job) {
  return job.methods.batch_per_gpu > 0 ? job.methods.batch_per_gpu
                                       : std::max(1.0, job.target_batch_size / job.peers_max);
}

int most_of(const MarketSpace& market, std::size_t candidate) {
  const Choice& choice = market.space.choices[candidate];
  int most = choice.most > 0 ? choice.most : market.space.most_peers;
  for (const int quota : choice.quotas)
    most = std::min(
        most, static_cast<int>(market.space.quotas[static_cast<std::size_t>(quota)] / choice.quota_use));
  return most;
}

double gradient_mb(const MarketSpace& market) {
  constexpr double kMbPerMillion = 4;
  return kMbPerMillion * market.params_m;
}

}  // namespace tw::plan
