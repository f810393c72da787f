// SPDX-License-Identifier: Apache-2.0
#include "wire/base64.h"

#include <gtest/gtest.h>

namespace tw::wire {
namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// RFC 4648, section 10, without the padding.
TEST(Base64, is_that_of_the_rfc) {
  const std::pair<std::string, std::string> vectors[] = {
      {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
      {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff", "-_8"}};
  for (const auto& [plain, encoded] : vectors) {
    EXPECT_EQ(to_base64(bytes_of(plain)), encoded);
    EXPECT_EQ(from_base64(encoded), bytes_of(plain));
  }
}

TEST(Base64, knows_no_other_characters) {
  for (const char* text : {"Zg==", "Zm+v", "Zm/v", "Zm 9"})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace tw::wire
