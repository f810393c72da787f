// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace tw::data {

/// The bytes of a file, mapped: the kernel reads them on use and caches them in memory, so a file may be
/// larger than memory. If the file is truncated meanwhile, the process ends (SIGBUS). Immutable, hence usable
/// from any thread.
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
