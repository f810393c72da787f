// SPDX-License-Identifier: Apache-2.0
#include "wire/token.h"

#include "base/check.h"
#include "base/digest.h"
#include "fuzz/target.h"
#include "wire/base64.h"

namespace tw::fuzz {
namespace {

void comes_back(const std::string& text) {
  const Result<wire::Token> token = wire::token_in(text);
  if (!token) return;
  const Result<wire::Token> again = wire::token_in(to_text(token.value()));
  TW_CHECK(again && again.value() == token.value());
}

/// Any fields behind a length and a checksum that are right, as whoever makes tokens can send them.
std::string sealed(Input& input) {
  std::vector<std::byte> bytes = input.bytes(2 + input.rest().size());
  const std::size_t length = bytes.size() + 8;
  for (std::size_t i = 0; i < 2; ++i) bytes[i] = static_cast<std::byte>(length >> (8 * i));
  const std::uint64_t checksum = digest_of(std::span<const std::byte>(bytes)).low;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(checksum >> (8 * i)));
  return "tw1-" + wire::to_base64(bytes);
}

wire::Token any_token(Input& input) {
  wire::Token token{.run = std::string(input.below(20), 'r'),
                    .role = static_cast<wire::Role>(1 + input.below(3))};
  token.expires_unix_s = static_cast<std::int64_t>(input.word());
  for (std::uint64_t i = input.below(4); i > 0; --i) token.addresses.emplace_back(input.below(30), 'a');
  token.certificate = input.bytes(input.byte());
  for (std::byte& b : token.secret) b = static_cast<std::byte>(input.byte());
  return token;
}

}  // namespace

void token(Input& input) {
  switch (input.below(3)) {
    case 0: {
      const wire::Token made = any_token(input);
      const Result<wire::Token> back = wire::token_in(to_text(made));
      TW_CHECK(back && back.value() == made);
      return;
    }
    case 1:
      return comes_back(sealed(input));
    default: {
      const auto bytes = input.rest();
      comes_back(std::string(bytes.begin(), bytes.end()));
      return comes_back("tw1-" + std::string(bytes.begin(), bytes.end()));
    }
  }
}

}  // namespace tw::fuzz
