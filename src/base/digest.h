// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tw {

/// 128 bits that identify a content (XXH3). Finds accidents, not forgeries.
struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  auto operator<=>(const Digest&) const = default;
};

/// Digest of values that come in pieces.
class Digester {
 public:
  Digester();
  ~Digester();
  Digester(const Digester&) = delete;
  Digester& operator=(const Digester&) = delete;

  void add(std::span<const float> values);

  Digest digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest digest_of(std::span<const std::byte> bytes);
Digest digest_of(std::span<const float> values);
Digest digest_of(const std::string& text);

/// Values of a piece of digest_of_parameters().
inline constexpr std::size_t kDigestPiece = 1 << 16;

/// The digest of the digests of pieces of kDigestPiece values; a vector of one piece has its plain digest. So
/// many threads compute it at most, and it does not depend on their number.
Digest digest_of_parameters(std::span<const float> parameters, std::size_t threads = 1);

/// digest_of_parameters() of one vector again and again: pieces in which nothing changed are not read again.
class ParameterDigest {
 public:
  /// These values may have changed since the last of().
  void changed(std::size_t first, std::size_t count);

  /// All values may have.
  void changed() { pieces_.clear(); }

  Digest of(std::span<const float> parameters, std::size_t threads = 1);

 private:
  std::vector<std::optional<Digest>> pieces_;  // of each piece, where it is known; empty: of none
};

/// 32 lower-case hexadecimal digits.
std::string to_string(const Digest& digest);

}  // namespace tw
