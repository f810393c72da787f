// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tw {

/// A process that this one started; it ends at the latest with this object, and with this process, however
/// that ends.
class Child {
 public:
  /// Runs this program again with other arguments, in its own process group (signals of the terminal do not
  /// reach it). Both outputs go to the end of the file at output_path.
  static Result<Child> start_self(const std::vector<std::string>& arguments, const std::string& output_path);

  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), ending_(other.ending_) {}

  Child(const Child&) = delete;
  Child& operator=(Child&&) = delete;
  ~Child();

  void send_signal(int signal) const;

  /// How it ended, once it has: exit status, or 128 + signal.
  std::optional<int> ending();

 private:
  explicit Child(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  std::optional<int> ending_;
};

}  // namespace tw
