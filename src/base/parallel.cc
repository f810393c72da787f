// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tw {

void in_parallel(std::size_t threads, std::size_t parts, const std::function<void(std::size_t)>& part) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr thrown;  // guarded by mutex
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < parts; i = next++) part(i);
    } catch (...) {
      next = parts;
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t i = 1; i < std::min(threads, parts); ++i) others.emplace_back(work);
    } catch (const std::system_error&) {  // a limit of the machine: those that are there do all
    }
    work();
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace tw
