// SPDX-License-Identifier: Apache-2.0
#include "plan/methods/parameter_server.h"

#include <algorithm>

namespace tw::plan {
namespace {

/// State of the network with some of the workers.
struct Load {
  double waiting = 0;  ///< at one server, on average, the one that is served included
  double steps_per_s = 0;
};

/// Time of a worker at a server, which it finds in the state that the others alone produce: those that wait,
/// and half of the one that is served.
double stay_s(const Load& others, double service_s) {
  const double busy = std::min(1.0, others.steps_per_s * service_s);
  return service_s * (1 + std::max(0.0, others.waiting - busy) + busy / 2);
}

/// All combinations of numbers of workers of each class, first class fastest.
struct Combinations {
  std::vector<std::size_t> strides;
  std::size_t size = 1;

  explicit Combinations(const std::vector<WorkerClass>& workers) {
    for (const WorkerClass& one : workers) {
      strides.push_back(size);
      size *= static_cast<std::size_t>(one.count) + 1;
    }
  }

  std::size_t count(std::size_t index, std::size_t of) const {
    const std::size_t end = of + 1 < strides.size() ? strides[of + 1] : size;
    return index % end / strides[of];
  }
};

}  // namespace

double server_step_s(int tensors, double megabytes) { return 94e-6 * tensors + 1.37e-3 * megabytes; }

double steps_per_s(const std::vector<WorkerClass>& workers, double server_step_s, int servers) {
  const double service_s = server_step_s / servers;
  const Combinations all(workers);
  std::vector<Load> loads(all.size);
  for (std::size_t index = 1; index < all.size; ++index) {
    for (std::size_t of = 0; of < workers.size(); ++of) {
      const std::size_t count = all.count(index, of);
      if (count == 0) continue;
      const double stay = stay_s(loads[index - all.strides[of]], service_s);
      const double rate = static_cast<double>(count) / (workers[of].step_s + servers * stay);
      loads[index].steps_per_s += rate;
      loads[index].waiting += rate * stay;
    }
  }
  return loads.back().steps_per_s;
}

}  // namespace tw::plan
