// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/time.h"
#include "host/executor_thread.h"
#include "host/loop.h"

namespace tw::host {

/// A second thread that encrypts and decrypts for the channels of one loop while they move so much that one
/// core would bound them: AES takes 0.27 s/GB at each end (docs/benchmarks.md), so a loop that does it all is
/// full at some 10 Gbit/s. Below kFast the hand-over costs more than it gains. Loop thread only.
class CipherThread {
 public:
  static constexpr double kFast = 500e6;                ///< bytes/s, both directions together: 4 Gbit/s
  static constexpr std::size_t kWorthwhile = 32 << 10;  ///< bytes; less is done before the thread wakes

  enum class Use {
    when_fast,  ///< and there are cores for it: three or more
    always,     ///< for whatever is worthwhile
  };

  CipherThread(Loop& loop, Use use);

  /// So many bytes are to be encrypted or decrypted. True: on the thread, by submit().
  bool takes(std::size_t bytes);

  /// Jobs run one after the other; done on the loop thread.
  void submit(std::function<void()> run, std::function<void()> done);

 private:
  bool is_fast(std::size_t bytes);

  Loop& loop_;
  Use use_;
  bool has_cores_;
  bool fast_ = false;
  Instant since_{};                         ///< beginning of the window that is counted
  std::uint64_t bytes_ = 0;                 ///< in it
  std::unique_ptr<ThreadExecutor> thread_;  ///< made with the first job
};

}  // namespace tw::host
