// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tw::fuzz {

/// Bytes of a fuzzer as a source of choices; zeros when they are used up.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }

  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }

  /// In [0, bound), bound at most 256.
  std::uint64_t below(std::uint64_t bound) { return byte() % bound; }

  bool one_in(std::uint64_t n) { return below(n) == n - 1; }

  std::uint64_t word() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }

  /// Mostly small, sometimes at an edge, now and then anything.
  std::uint64_t number() {
    const std::uint8_t kind = byte();
    if (kind < 200) return kind % 25;
    if (kind < 240) return std::uint64_t{0} - (kind % 3);
    if (kind < 248) return std::uint64_t{1} << (kind % 8 * 9);
    return word();
  }

  std::vector<std::byte> bytes(std::size_t count) {
    std::vector<std::byte> all(count);
    for (std::byte& b : all) b = static_cast<std::byte>(byte());
    return all;
  }

  template <class T>
  const T& one_of(const std::vector<T>& values) {
    return values[below(values.size())];
  }

  std::span<const std::uint8_t> rest() const { return bytes_; }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace tw::fuzz
