// SPDX-License-Identifier: Apache-2.0
#include "host/system/thrown.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/cause_text.h"

namespace tw::host {

std::string words_of(const std::exception& thrown) {
  const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&thrown);
  if (file == nullptr) return thrown.what();
  const std::string path = file->path1().string(), cause = cause_text(file->code());
  std::error_code gone;
  if (!file->path1().is_absolute() && std::filesystem::current_path(gone).empty())
    return fmt::format("the current folder: {}; cd to a folder that exists", cause);
  return path.empty() ? cause : fmt::format("{}: {}", path, cause);
}

}  // namespace tw::host
