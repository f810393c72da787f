// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"

namespace tw::wire {

/// A link that is turned away for a reason that no later dial of the same process can change. It travels as
/// the text of the refusal (world/network.h), which programs read by its code and users by its words.
struct Rejection {
  enum class Code : std::uint8_t {
    version,     ///< another version of the protocol
    parameters,  ///< another model
    run,         ///< another run
    taken,       ///< another process takes part under the id `peer`
    self,        ///< it called itself
    credential,  ///< no token that holds for both, or TLS on one side alone
  };

  Code code{};
  PeerId peer;  ///< taken, self: the id in question
  std::string words;
  std::uint32_t place = 0;  ///< parameters, run: of the first fact that differs, counted from 1; 0: not known
};

/// "[taken 5] peer id 5 is taken", "[run 5 12] another run"
std::string to_string(const Rejection& rejection);

/// The inverse; nothing for any other text.
std::optional<Rejection> rejection_in(const std::string& why);

}  // namespace tw::wire
