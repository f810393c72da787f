// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <system_error>

namespace tw::host {

/// What a socket or resolver reports, in lower-case words: "connection refused", "connection closed".
std::string in_words(const std::error_code& error);

}  // namespace tw::host
