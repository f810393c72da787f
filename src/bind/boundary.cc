// SPDX-License-Identifier: Apache-2.0
#include "bind/boundary.h"

#include <cstdlib>
#include <cstring>

#include "base/text/printable.h"

namespace tw::bind {
namespace {

thread_local std::string sentence;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace

const std::string& last_error() { return sentence; }

int misuse(std::string_view why) {
  sentence = printable(why);
  return TW_MISUSE;
}

int failed(std::string_view why) {
  sentence = printable(why);
  return TW_FAILED;
}

char* copy_of(const std::string& text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));  // NOLINT: tw_free frees it
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace tw::bind
