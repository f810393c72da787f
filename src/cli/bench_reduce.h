// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/bench_arguments.h"
#include "cli/bench_result.h"

namespace tw::bench {

struct ReduceOptions {
  std::uint64_t peers = 2;
  std::uint64_t bytes = 0;
  Codec codec = Codec::fp32;
  Round warm_up = 0;
  Round rounds = 1;
  Round turns = 1;
  std::vector<std::string> rivals;
  std::optional<Disturbance> disturbance;
};

/// `tw bench reduce`: all systems take turns. say: progress, a line each.
Result<BenchResult> reduce(const ReduceOptions& options, const std::function<void(const std::string&)>& say);

}  // namespace tw::bench
