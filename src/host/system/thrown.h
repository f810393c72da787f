// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace tw::host {

/// What an exception says to a user. A file or folder is named with the cause; a current folder that was
/// removed, with the remedy. Thread-safe.
std::string words_of(const std::exception& thrown);

}  // namespace tw::host
