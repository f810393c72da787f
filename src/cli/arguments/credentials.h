// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "wire/token.h"

namespace tw::cli {

/// Options of `tw token`. Every error names the option, the value and what was expected.

/// "30d", "12h", "45m": seconds.
Result<std::int64_t> parse_lifetime(const std::string& text);

Result<wire::Role> parse_role(const std::string& text);

}  // namespace tw::cli
