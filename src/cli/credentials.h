// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "host/identity/tls.h"
#include "wire/token.h"

namespace tw {

/// What `tw init`, `tw token`, `tw train` and `tw local` share about who may take part. Every error names the
/// option or file and the next command.

/// The file of a run folder that `tw train --run` reads.
std::string token_file(const std::string& run_folder);

/// "30d", "12h", "45m": seconds.
Result<std::int64_t> parse_lifetime(const std::string& text);

Result<Role> parse_role(const std::string& text);

/// The text of --token: a token, or @ and the name of a file that holds one.
Result<Token> read_token(const std::string& option, const std::string& text);

}  // namespace tw
