// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "launch/engine.h"
#include "launch/local/child.h"

namespace tw::launch {

/// The variable that names a file in which a process of a crew says where its peer stands, in one word, since
/// programs seldom map their end to an exit code: "joining"; "begun" (it takes part); how it ended
/// ("complete", "left", "notice", ...); "condemned" (it did not join, for its machine is about to go); "lost"
/// (nothing is left of the run); "unreached" (it found no peer of its run); "over" (the run was complete
/// before it took part); "unsaved" (the run is complete, its last checkpoint is missing).
inline constexpr const char* kVerdictVariable = "TRADEWIND_VERDICT";

/// The peer has not begun to take part, as far as it said.
inline bool waits(std::string_view verdict) { return verdict == "joining"; }

/// The peer has taken part in its run.
inline bool took_part(std::string_view verdict) {
  return !verdict.empty() && !waits(verdict) && verdict != "condemned" && verdict != "lost" &&
         verdict != "unreached" && verdict != "over";
}

/// Exit code of a peer by what it said, where the program's own exit code knows no better.
/// code: that of a program that ended by itself.
inline int exit_code(int code, std::string_view verdict) {
  if (verdict == "lost" && code <= 1) return kUsageExit;
  if (verdict == "unsaved" && code == 0) return 1;
  if (verdict == "notice" && code == 0) return kGoesOn;
  if ((verdict == "condemned" || verdict == "unreached") && code <= 1) return kGoesOn;
  return code;
}

/// Why a peer failed with this exit code, for the end of a message; empty: its program knows.
inline std::string_view reason_of(int code, std::string_view verdict) {
  if (verdict == "unsaved" && code == 1) return ": its last checkpoint is missing";
  if (verdict == "lost" && code == kUsageExit) return ": nothing is left of the run";
  return "";
}

}  // namespace tw::launch
