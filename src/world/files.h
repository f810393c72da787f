// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tw::world {

/// A write to this path, which names an object of a store, is whole or not there, also where it replaces
/// another. A file of a disk is seen while it is written.
inline bool appears_whole(const std::string& path) { return path.find("://") != std::string::npos; }

/// Door to the disk. Calls block; from any thread. Errors name path and cause.
class Files {
 public:
  virtual ~Files() = default;

  virtual Result<std::vector<std::byte>> read(const std::string& path) = 0;

  /// Creates or truncates, writes all parts one after the other, and makes the content durable (fsync).
  virtual Status write(const std::string& path, std::span<const std::span<const std::byte>> parts) = 0;

  /// Replaces atomically; durable on return (fsync of the folder).
  virtual Status rename(const std::string& from, const std::string& to) = 0;

  virtual Status remove(const std::string& path) = 0;

  /// Names (not paths) of the plain files in a folder, sorted. Error::lasting: there is no such folder; a
  /// store has every folder.
  virtual Result<std::vector<std::string>> list(const std::string& folder) = 0;

  /// Makes it with all parents; no error when it exists.
  virtual Status make_folder(const std::string& folder) = 0;
};

}  // namespace tw::world
