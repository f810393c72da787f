// SPDX-License-Identifier: Apache-2.0
#include "monitor/board/board.h"

#include <array>

namespace tw::monitor {

std::string_view name_of(Interruption::Kind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"joined", "notice", "handed_over", "left", "lost"};
  return kNames.at(static_cast<std::size_t>(kind));
}

}  // namespace tw::monitor
