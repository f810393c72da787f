// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/link_word.h"

#include <vector>

namespace tw::host {
namespace {

constexpr std::size_t kBytes = 9;

}  // namespace

Frame encode_link_word(const LinkWord& word) {
  std::vector<std::byte> bytes(kBytes);
  bytes[0] = static_cast<std::byte>(word.kind);
  for (std::size_t i = 1; i < kBytes; ++i) bytes[i] = static_cast<std::byte>(word.value >> (8 * (i - 1)));
  return {{}, Blob(std::move(bytes))};
}

Result<LinkWord> decode_link_word(const Frame& frame) {
  const auto bytes = frame.payload.bytes();
  const auto kind = bytes.empty() ? std::uint8_t{0} : std::to_integer<std::uint8_t>(bytes[0]);
  if (bytes.size() != kBytes || kind < 1 || kind > 2) return Error{"sent a malformed control message"};
  LinkWord word{LinkWord::Kind{kind}, 0};
  for (std::size_t i = 1; i < kBytes; ++i)
    word.value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * (i - 1));
  return word;
}

}  // namespace tw::host
