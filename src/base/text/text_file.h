// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace tw {

/// Limit for tables and token files: the largest catalog of a cloud has 20 MB.
inline constexpr std::uint64_t kMostTextBytes = 256ULL << 20;
/// Limit for files that people write by hand.
inline constexpr std::uint64_t kMostYamlBytes = 1ULL << 20;

/// The whole of a regular file. A folder, a pipe, a socket and a device are errors, found without waiting for
/// them, and so is a file of more bytes than most_bytes. Errors: "PATH: cannot be read: WHY".
Result<std::string> read_text_file(const std::string& path, std::uint64_t most_bytes = kMostTextBytes);

}  // namespace tw
