// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "sim/virtual/scheduler.h"

namespace tw::sim {

/// A transfer: it takes bytes from one end to the other through links that it shares with others.
struct Flow {
  double bytes = 0;
  double cap_bytes_per_s = std::numeric_limits<double>::infinity();  ///< of its own, such as window / RTT
  std::vector<int> links;                                            ///< that it crosses
};

/// Transfers as fluids: at each time every flow has its max-min fair rate, that is, a flow gets less than its
/// cap only where a link it crosses is full and no other flow on that link gets more. Rates change when a
/// flow starts or ends. The caller adds latency. Must outlive the scheduler's calls.
class Flows {
 public:
  explicit Flows(Scheduler& scheduler) : scheduler_(scheduler) {}

  Flows(const Flows&) = delete;
  Flows& operator=(const Flows&) = delete;

  /// Returns the number by which flows name it.
  int add_link(double bytes_per_s);

  /// `done` is called when the last byte has left. A flow needs a cap or a link.
  void start(const Flow& flow, std::function<void()> done);

  std::size_t under_way() const { return flows_.size(); }

 private:
  struct Moving {
    Flow flow;
    double left = 0;
    double bytes_per_s = 0;
    bool settled = false;  ///< while rates are shared out
    std::function<void()> done;
  };

  void settle_soon();
  void settle();
  void share();
  double fair_share() const;
  void fix(Moving& moving, double bytes_per_s);
  bool on_full_link(const Moving& moving, double level) const;
  void advance();
  void finish_done();

  struct Link {
    double bytes_per_s = 0;
    double free = 0;  ///< while rates are shared out
    int contenders = 0;
  };

  Scheduler& scheduler_;
  std::vector<Link> links_;
  std::vector<Moving> flows_;
  Instant then_{};  ///< up to which `left` is right
  bool settling_ = false;
  std::uint64_t generation_ = 0;  ///< of the scheduled end; older ones are void
};

}  // namespace tw::sim
