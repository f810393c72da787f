// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include "base/cause_text.h"

namespace tw::host {

/// A new temporary folder; removed with its content at the end of this object.
class TemporaryFolder {
 public:
  /// Throws std::runtime_error if it cannot be made.
  TemporaryFolder() : path_(parent() + "/tw-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr)
      throw std::runtime_error("cannot make a folder in " + parent() + ": " + cause_text(errno) +
                               "; set TMPDIR to a folder where this user may write");
  }

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

 private:
  static std::string parent() {
    for (const char* const variable : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"})
      if (const char* const named = std::getenv(variable); named != nullptr && *named != '\0') return named;
    return "/tmp";
  }

  std::string path_;
};

}  // namespace tw::host
