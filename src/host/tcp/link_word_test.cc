// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/link_word.h"

#include <gtest/gtest.h>

namespace tw::host {
namespace {

TEST(LinkWord, comes_back_as_it_was_sent) {
  for (const auto kind : {LinkWord::Kind::grant, LinkWord::Kind::streams}) {
    const LinkWord word{kind, 0x1122334455667788};
    const Frame frame = encode_link_word(word);
    EXPECT_TRUE(is_link_word(frame));
    const auto back = decode_link_word(frame);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back.value(), word);
  }
}

TEST(LinkWord, refuses_everything_else) {
  Frame frame = encode_link_word({LinkWord::Kind::grant, 7});
  const auto bytes = frame.payload.bytes();
  EXPECT_FALSE(decode_link_word({}).ok());
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_link_word({{}, Blob({bytes.begin(), bytes.begin() + static_cast<long>(size)})}).ok());
  }
  std::vector<std::byte> longer(bytes.begin(), bytes.end());
  longer.push_back({});
  EXPECT_FALSE(decode_link_word({{}, Blob(longer)}).ok());
  for (const int kind : {0, 3, 255}) {
    std::vector<std::byte> other(bytes.begin(), bytes.end());
    other[0] = static_cast<std::byte>(kind);
    EXPECT_FALSE(decode_link_word({{}, Blob(other)}).ok()) << kind;
  }
}

}  // namespace
}  // namespace tw::host
