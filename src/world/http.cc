// SPDX-License-Identifier: Apache-2.0
#include "world/http.h"

#include <algorithm>

namespace tw::world {
namespace {

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::optional<std::string> HttpAnswer::header(std::string_view name) const {
  for (const auto& [known, value] : headers)
    if (std::ranges::equal(known, name, {}, small, small)) return value;
  return std::nullopt;
}

}  // namespace tw::world
