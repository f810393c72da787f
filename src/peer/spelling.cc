// SPDX-License-Identifier: Apache-2.0
#include "peer/spelling.h"

#include <algorithm>

namespace tw::peer {

OptionName spelled(Spelling spelling, std::string_view name) {
  if (spelling == Spelling::python) return {std::string(name), '='};
  std::string words(name);
  std::replace(words.begin(), words.end(), '_', '-');
  return {"--" + words};
}

std::string variable_of(std::string_view name) {
  std::string variable = "TRADEWIND_";
  for (const char c : name == "run" ? "run_folder" : name)
    variable += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return variable;
}

std::string spelled_flag(Spelling spelling, std::string_view name) {
  const OptionName option = spelled(spelling, name);
  return spelling == Spelling::python ? option.with("True") : option.name;
}

}  // namespace tw::peer
