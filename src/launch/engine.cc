// SPDX-License-Identifier: Apache-2.0
#include "launch/engine.h"

#include <array>

namespace tw::launch {

std::string_view to_string(PeerState state) {
  static constexpr std::array<std::string_view, 8> kNames = {"unknown", "absent", "waiting", "running",
                                                             "leaving", "left",   "done",    "failed"};
  static_assert(kNames.size() == static_cast<std::size_t>(PeerState::failed) + 1);
  return kNames.at(static_cast<std::size_t>(state));
}

PeerState state_after(int exit_code) {
  if (exit_code == 0) return PeerState::done;
  return exit_code == kLeftExit ? PeerState::left : PeerState::failed;
}

}  // namespace tw::launch
