// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace tw::host {

/// Locks of this process on ranges of one file, against other processes (POSIX record locks). They end with
/// the process, a forked child has none of them, and they work over NFS. Within the process they exclude
/// nobody. Closing any descriptor of a file drops all locks that its process has on it, so the FileLocks of
/// one file share one, and their locks stay until the last of them ends. Any thread.
class FileLock {
 public:
  enum class Kind { shared, exclusive };

  /// Bytes, which the file need not have; count 0: all from the first on.
  struct Range {
    std::uint64_t first = 0, count = 0;
  };

  /// A process that holds a lock; nothing: none does. 0: one on another machine, or in another container.
  using Holder = std::optional<pid_t>;

  /// Makes the file if it is missing. Errors name the path and why it cannot be written.
  static Result<FileLock> open(const std::string& path);

  /// Locks the range, or returns the process that is in the way. Does not wait. Error: the file system has no
  /// locks.
  Result<Holder> lock(Kind kind, Range range);

  /// The process that would be in the way.
  Result<Holder> holder(Kind kind, Range range) const;

  void unlock(Range range);

  /// Its path still names the file that was opened: nobody has removed or replaced it since.
  bool is_at_its_path() const;

 private:
  struct Open;

  // owners: the locks of this process on the file
  FileLock(std::string path, std::shared_ptr<Open> file) : path_(std::move(path)), file_(std::move(file)) {}

  Error no_locks() const;

  std::string path_;
  std::shared_ptr<Open> file_;  // owners: the FileLocks of this file
};

}  // namespace tw::host
