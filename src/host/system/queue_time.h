// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/time.h"

namespace tw::host {

/// Time that the threads of this process were ready to run and had no processor, as the kernel counts it
/// (/proc/self/task/*/schedstat). One thread.
class QueueTime {
 public:
  /// Sum of all threads but those that have ended; never less than before. 0: the kernel does not tell. It
  /// is read at most once in kEvery: each thread is a file.
  double seconds(Instant now);

  static constexpr Duration kEvery = std::chrono::milliseconds(200);

 private:
  Instant read_at_{};
  double seconds_ = 0;
};

}  // namespace tw::host
