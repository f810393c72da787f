// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace tw::host {

/// The value of a variable; empty: not set.
using Environment = std::function<std::string(const std::string& name)>;

/// That of this process.
inline std::string environment_value(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

/// The names of all variables of this process.
std::vector<std::string> environment_names();

}  // namespace tw::host
