// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/ids.h"
#include "wire/bandwidth.h"

namespace tw::swarm {

/// One participant of an averaging: a peer that gets the mean.
struct Participant {
  PeerId peer;
  bool owns = true;                 ///< may reduce a share
  std::uint32_t contributions = 1;  ///< vectors that it sends
  wire::Bandwidth bandwidth{};
  std::string site{};  ///< empty: one of its own
};

}  // namespace tw::swarm
