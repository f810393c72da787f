// SPDX-License-Identifier: Apache-2.0
#include "host/system/queue_time.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

namespace tw::host {
namespace {

/// The second number of the file: nanoseconds on a run queue. 0: it cannot be read, the thread has ended.
double queued_seconds(int tasks, const char* thread) {
  const int file = ::openat(tasks, (std::string(thread) + "/schedstat").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 128> text{};
  const ssize_t read = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  if (read <= 0) return 0;
  char* rest = nullptr;
  (void)std::strtoull(text.data(), &rest, 10);
  return static_cast<double>(std::strtoull(rest, nullptr, 10)) * 1e-9;
}

}  // namespace

std::optional<double> QueueTime::seconds(Instant now) {
  if (read_at_ != Instant{} && now - read_at_ < kEvery) return std::nullopt;
  read_at_ = now;
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir("/proc/self/task"), &::closedir);
  if (!tasks) return seconds_;
  double most = 0;
  std::map<std::string, double> now_by_thread;
  while (const dirent* const entry = ::readdir(tasks.get())) {
    if (entry->d_name[0] == '.') continue;
    const double queued = queued_seconds(::dirfd(tasks.get()), entry->d_name);
    const auto before = by_thread_.find(entry->d_name);
    most = std::max(most, queued - (before == by_thread_.end() ? 0 : before->second));
    now_by_thread[entry->d_name] = queued;
  }
  by_thread_ = std::move(now_by_thread);
  seconds_ += most;
  return seconds_;
}

}  // namespace tw::host
