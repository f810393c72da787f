// SPDX-License-Identifier: Apache-2.0
#include "wan/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tw::wan {
namespace {

std::string complaint(const BoxSecond& second) {
  if (second.unread > 0) return fmt::format("{} packets not read in time", second.unread);
  const double late_share = second.packets == 0 ? 0 : double(second.late) / double(second.packets);
  if (second.late >= Load::kFewestLate && late_share > Load::kMostLateShare) {
    return fmt::format("{:.1f} % of packets more than 2 ms late, the worst {:.1f} ms", 100 * late_share,
                       to_seconds(second.worst_lag) * 1e3);
  }
  if (second.cpu_share > Load::kMostCpuShare)
    return fmt::format("{:.0f} % of a core used", 100 * second.cpu_share);
  return "";
}

}  // namespace

void Load::delivered(Duration lag) {
  ++now_.packets;
  if (lag > kLate) ++now_.late;
  now_.worst_lag = std::max(now_.worst_lag, lag);
}

void Load::close(Duration cpu, Duration elapsed, std::uint64_t unread) {
  now_.cpu_share = elapsed > Duration{} ? to_seconds(cpu) / to_seconds(elapsed) : 0;
  now_.unread = unread;
  last_ = std::exchange(now_, {});
  worst_lag_ = std::max(worst_lag_, last_.worst_lag);
  worst_cpu_share_ = std::max(worst_cpu_share_, last_.cpu_share);
  const std::string broken = complaint(last_);
  if (broken.empty()) return;
  ++overloaded_seconds_;
  why_ = broken;
}

}  // namespace tw::wan
