// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/time.h"

namespace tw::host {

/// Time that a thread of this process was ready to run and had no processor, as the kernel counts it
/// (/proc/self/task/*/schedstat): of each interval between two readings that of its most hindered thread.
/// Others may have waited beside it, so their sum would be no time. One thread.
class QueueTime {
 public:
  /// So far. 0: the kernel does not tell. Nothing: it was read less than kEvery ago; each thread is a file.
  std::optional<double> seconds(Instant now);

  static constexpr Duration kEvery = std::chrono::milliseconds(200);

 private:
  Instant read_at_{};
  std::map<std::string, double> by_thread_;  ///< since each began
  double seconds_ = 0;
};

}  // namespace tw::host
