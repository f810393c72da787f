// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "world/files.h"

namespace tw::host {

/// The Files door on POSIX. A write that fails leaves a partial file: write beside the target, then rename.
class DiskFiles : public world::Files {
 public:
  Result<std::vector<std::byte>> read(const std::string& path) override;
  Status write(const std::string& path, std::span<const std::span<const std::byte>> parts) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& folder) override;
  Status make_folder(const std::string& folder) override;
};

}  // namespace tw::host
