// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <system_error>

namespace tw::host {

/// An error of a socket or resolver in lower-case words: "connection refused", "connection closed".
std::string in_words(const std::error_code& error);

}  // namespace tw::host
