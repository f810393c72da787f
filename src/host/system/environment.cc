// SPDX-License-Identifier: Apache-2.0
#include "host/system/environment.h"

#include <unistd.h>

#include <string_view>

namespace tw::host {

std::vector<std::string> environment_names() {
  std::vector<std::string> names;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view variable(*one);
    names.emplace_back(variable.substr(0, variable.find('=')));
  }
  return names;
}

}  // namespace tw::host
