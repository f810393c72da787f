// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tw::sim {

/// Makes rarely taken branches common (after FoundationDB's buggify): a site is active in a quarter of the
/// runs, and then fires in a quarter of the cases. The protocol asks by the name of the site (base/rarely.h).
class RareSites {
 public:
  explicit RareSites(std::uint64_t seed) : seed_(seed) {}

  bool operator()(std::string_view site);

  /// How often each active site fired.
  std::map<std::string, int> fired() const;

 private:
  struct Site {
    bool active = false;
    std::uint64_t asked = 0;
    int fired = 0;
  };

  std::uint64_t seed_;
  std::map<std::string, Site, std::less<>> sites_;
};

}  // namespace tw::sim
