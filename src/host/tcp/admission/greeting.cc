// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/admission/greeting.h"

#include <algorithm>

#include "wire/limits.h"

namespace tw::host {
namespace {

constexpr std::size_t kHeadBytes = 31;

void put(std::byte* at, std::uint64_t value, int bytes = 8) {
  for (int i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint64_t get(const std::byte* at, int bytes = 8) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
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
  const world::Refusal& reason = greeting.reason;
  head[18] = static_cast<std::byte>(reason.code);
  put(&head[19], reason.peer.value);
  put(&head[27], reason.place, 4);
  const auto words =
      std::as_bytes(std::span(reason.words)).first(std::min(reason.words.size(), wire::kMostReasonBytes));
  return {Blob(std::move(head)), Blob(std::vector<std::byte>(words.begin(), words.end()))};
}

Result<Greeting> decode_greeting(const Frame& frame) {
  const auto head = frame.head.bytes();
  const auto words = frame.payload.bytes();
  if (head.size() != kHeadBytes || words.size() > wire::kMostReasonBytes)
    return Error{"sent a malformed greeting"};
  const auto kind = std::to_integer<std::uint8_t>(head[0]);
  const auto verdict = std::to_integer<std::uint8_t>(head[1]);
  const auto code = std::to_integer<std::uint8_t>(head[18]);
  if (kind < 1 || kind > 2 || verdict < 1 || verdict > 4 ||
      code > static_cast<std::uint8_t>(world::Refusal::kLast))
    return Error{"sent a malformed greeting"};
  Greeting greeting{StreamKind{kind}, Verdict{verdict}, PeerId{get(&head[2])}, get(&head[10]), {}};
  greeting.reason = {
      {}, world::Refusal::Code{code}, PeerId{get(&head[19])}, static_cast<std::uint32_t>(get(&head[27], 4))};
  std::transform(words.begin(), words.end(), std::back_inserter(greeting.reason.words), shown);
  return greeting;
}

}  // namespace tw::host
