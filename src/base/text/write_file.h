// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace tw {

/// Writes a file that people or programs read as a whole: under its name stands the whole text, or what stood
/// there before, whatever happens (a full disk, a killed process). A symbolic link is replaced, not followed;
/// devices and pipes are written to. mode: of the file; none: as the umask wants. Errors read "PATH: cannot
/// be written: WHY".
Status write_file(const std::string& path, const std::string& text, std::optional<unsigned> mode = {});

}  // namespace tw
