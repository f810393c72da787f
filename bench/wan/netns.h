// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

/// Network namespaces under /run/netns, so that `ip netns` sees them. Root only.
namespace tw::wan {

/// A file descriptor with one owner.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}

  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  ~Fd();

  int get() const { return fd_; }

  bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// "WHAT: why", of errno.
Error os_error(const std::string& what);

Status create_netns(const std::string& name);
Result<Fd> open_netns(const std::string& name);

/// Makes this thread one of the namespace.
Status enter_netns(const Fd& netns);

Result<Fd> current_netns();

std::vector<std::string> netns_names(const std::string& prefix);

/// Processes that live in one of the namespaces, this one left out.
std::vector<pid_t> processes_in(const std::vector<std::string>& names);

/// Ends their processes (SIGTERM, a second later SIGKILL), then removes them.
Status remove_netns(const std::vector<std::string>& names);

/// Writes /proc/sys/net/KEY of the namespace of this thread.
Status write_sysctl(const std::string& key, const std::string& value);

}  // namespace tw::wan
