// SPDX-License-Identifier: Apache-2.0
#include "swarm/descent.h"

#include "wire/frame.h"

namespace tw {

std::optional<bool> gives_way_by_descent(const Record& own, const Record& other) {
  if (own.had_company != other.had_company) return other.had_company;
  if (own.round != other.round) return std::nullopt;
  if (other.parent == digest_of(own)) return true;
  if (own.parent == digest_of(other)) return false;
  return std::nullopt;
}

}  // namespace tw
