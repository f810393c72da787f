// SPDX-License-Identifier: Apache-2.0
#include "wire/base64.h"

#include <cstdint>

namespace tw::wire {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text;
  std::uint32_t held = 0;
  int bits = 0;
  for (const std::byte b : bytes) {
    held = held << 8 | std::to_integer<std::uint32_t>(b);
    for (bits += 8; bits >= 6; bits -= 6) text += kDigits[held >> (bits - 6) & 63];
  }
  if (bits > 0) text += kDigits[held << (6 - bits) & 63];
  return text;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  std::vector<std::byte> bytes;
  std::uint32_t held = 0;
  int bits = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    held = held << 6 | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits >= 8) bytes.push_back(static_cast<std::byte>(held >> (bits -= 8)));
  }
  return bytes;
}

}  // namespace tw::wire
