// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>

namespace tw::host {

/// Value of a variable of this process's environment; empty: not set.
inline std::string environment_value(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

}  // namespace tw::host
