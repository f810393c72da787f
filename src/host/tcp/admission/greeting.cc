// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/admission/greeting.h"

#include <algorithm>

#include "wire/limits.h"

namespace tw::host {
namespace {

constexpr std::size_t kHeadBytes = 18;

void put(std::byte* at, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint64_t get(const std::byte* at) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  return value;
}

char shown(std::byte byte) {
  const auto c = std::to_integer<unsigned char>(byte);
  return c < 0x20 || c == 0x7f ? '?' : static_cast<char>(c);
}

}  // namespace

Frame encode_greeting(const Greeting& greeting) {
  std::vector<std::byte> head(kHeadBytes);
  head[0] = static_cast<std::byte>(greeting.kind);
  head[1] = static_cast<std::byte>(greeting.verdict);
  put(&head[2], greeting.sender.value);
  put(&head[10], greeting.nonce);
  const auto reason = std::as_bytes(std::span(greeting.reason))
                          .first(std::min(greeting.reason.size(), wire::kMostReasonBytes));
  return {Blob(std::move(head)), Blob(std::vector<std::byte>(reason.begin(), reason.end()))};
}

Result<Greeting> decode_greeting(const Frame& frame) {
  const auto head = frame.head.bytes();
  const auto reason = frame.payload.bytes();
  if (head.size() != kHeadBytes || reason.size() > wire::kMostReasonBytes)
    return Error{"sent a malformed greeting"};
  const auto kind = std::to_integer<std::uint8_t>(head[0]);
  const auto verdict = std::to_integer<std::uint8_t>(head[1]);
  if (kind < 1 || kind > 2 || verdict < 1 || verdict > 4) return Error{"sent a malformed greeting"};
  Greeting greeting{StreamKind{kind}, Verdict{verdict}, PeerId{get(&head[2])}, get(&head[10]), {}};
  std::transform(reason.begin(), reason.end(), std::back_inserter(greeting.reason), shown);
  return greeting;
}

}  // namespace tw::host
