// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tw {

/// SplitMix64 (Steele, Lea, Flood 2014): the same sequence on every machine. For permutations and simulation,
/// not for secrets.
class Prng {
 public:
  explicit Prng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  /// Uniform in [0, bound); bound > 0. Bias below 2^-32 for bounds up to 2^32.
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }

  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  bool chance(double probability) { return uniform() < probability; }

 private:
  std::uint64_t state_;
};

/// One well-mixed value from two: derives independent seeds.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return Prng(a ^ (b * 0xd6e8feb86659fd93U)).next();
}

}  // namespace tw
