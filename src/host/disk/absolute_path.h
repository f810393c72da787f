// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace tw::host {

/// The path, without a slash at its end, as it is found after the program has changed its working folder,
/// too. An empty one stays so, and any where the working folder is gone.
inline std::string absolute_path(const std::string& path) {
  std::error_code gone;
  const std::filesystem::path whole = std::filesystem::absolute(path + "/.", gone);
  return path.empty() || gone ? path : whole.lexically_normal().parent_path().string();
}

}  // namespace tw::host
