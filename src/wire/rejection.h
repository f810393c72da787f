// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"

namespace tw::wire {

/// Why a link is turned away, for reasons that no later dial of the same process can change. It travels as
/// the text of the refusal (world/network.h): programs read its code, users its words.
struct Rejection {
  enum class Code : std::uint8_t {
    version,     ///< another version of the protocol
    parameters,  ///< another model
    run,         ///< another run
    taken,       ///< another process takes part under the id `peer`
    self,        ///< it called itself
    credential,  ///< the two have no valid token in common, or only one side uses TLS
  };

  Code code{};
  PeerId peer;  ///< taken, self: the id in question
  std::string words;
  std::uint32_t place = 0;  ///< parameters, run: number of the first fact that differs, from 1; 0: not known
};

/// "[taken 5] peer id 5 is taken", "[run 5 12] another run"
std::string to_string(const Rejection& rejection);

/// The inverse; nothing for any other text.
std::optional<Rejection> rejection_in(const std::string& why);

}  // namespace tw::wire
