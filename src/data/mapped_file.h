// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace tw::data {

/// The bytes of a file, read by the kernel where they are used: the machine's memory is a cache of them, so a
/// file may be larger than it. A file that is truncated meanwhile ends the process (SIGBUS). Immutable,
/// hence free for any thread.
class MappedFile {
 public:
  /// A regular file. Errors: "PATH: cannot be opened: WHY".
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);  // owners: data sets of it

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace tw::data
