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

/// The content of a regular file. Errors: a folder, pipe, socket or device (detected without waiting for it),
/// and a file of more than most_bytes. Errors read "PATH: cannot be read: WHY".
Result<std::string> read_text_file(const std::string& path, std::uint64_t most_bytes = kMostTextBytes);

/// The same without the first `from` bytes, and no more than so many of the rest; empty: there are no more.
Result<std::string> read_text_from(const std::string& path, std::uint64_t from, std::uint64_t at_most);

}  // namespace tw
