// SPDX-License-Identifier: Apache-2.0
#include "wire/token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tw::wire {
namespace {

using testing::HasSubstr;
using testing::Not;

Token some_token() {
  Token token{.run = "words", .role = Role::anchor, .expires_unix_s = 1'790'000'000};
  token.run_key.fill(std::byte{0xab});
  token.secret.fill(std::byte{0x5e});
  token.addresses = {"10.0.0.5:7000", "[fd00::1]:7000"};
  token.certificate.assign(300, std::byte{7});
  return token;
}

std::string cause(const std::string& text) {
  const auto token = token_in(text);
  return token ? "a token" : token.error().message;
}

TEST(Token, comes_back_from_its_text) {
  const auto token = token_in(" " + to_text(some_token()) + "\r\n");
  ASSERT_TRUE(token) << token.error().message;
  EXPECT_EQ(token.value(), some_token());
}

TEST(Token, is_one_word_of_plain_characters) {
  const std::string text = to_text(some_token());
  EXPECT_EQ(text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
            std::string::npos);
  EXPECT_LT(text.size(), 600U);
}

TEST(Token, that_is_torn_anywhere_is_told_so) {
  const std::string text = to_text(some_token());
  for (std::size_t length = 5; length < text.size() - 1; ++length)
    EXPECT_THAT(cause(text.substr(0, length)), HasSubstr("is torn")) << length;
}

TEST(Token, that_is_mistyped_anywhere_is_refused) {
  const std::string text = to_text(some_token());
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {  // only some bits of the last character count
    std::string wrong = text;
    wrong[at] = wrong[at] == 'x' ? 'y' : 'x';
    EXPECT_NE(cause(wrong), "a token") << at;
  }
  EXPECT_THAT(cause(text + "AAAA"), HasSubstr("is mistyped"));
  std::string gap = text;
  gap[40] = ' ';
  EXPECT_THAT(cause(gap), HasSubstr("is mistyped"));
}

TEST(Token, that_is_none_is_told_what_was_expected) {
  EXPECT_THAT(cause(" \n"), HasSubstr("is empty"));
  EXPECT_THAT(cause("secret-word"), HasSubstr("tw token"));
  EXPECT_THAT(cause("secret-word"), Not(HasSubstr("secret-word"))) << "may be another secret";
}

TEST(Token, names_its_run_by_name_and_key) { EXPECT_EQ(run_of(some_token()), "'words' (abababab)"); }

}  // namespace
}  // namespace tw::wire
