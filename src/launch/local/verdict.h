// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "launch/exit_codes.h"

namespace tw::launch {

/// The variable that names a file in which a process of a crew says where its peer stands, in one word, since
/// programs seldom map their end to an exit code: "joining"; "begun" (it takes part); how it ended
/// ("complete", "left", "notice", ...); "closed" (its program ended its part before the end of the run, and
/// had not asked it to leave); "condemned" (it did not join, for its machine is about to go); "lost"
/// (nothing is left of the run); "taken" (another run trains in its folder); "unreached" (it found no peer of
/// its run); "over" (the run was complete before it took part); "unsaved" (the run is complete, its last
/// checkpoint is missing); "differs" (the run is complete, other peers have other parameters).
inline constexpr const char* kVerdictVariable = "TRADEWIND_VERDICT";

/// The peer has not begun to take part, as far as it said.
inline bool waits(std::string_view verdict) { return verdict == "joining"; }

/// The peer has taken part in its run.
inline bool took_part(std::string_view verdict) {
  return !verdict.empty() && !waits(verdict) && verdict != "condemned" && verdict != "lost" &&
         verdict != "taken" && verdict != "unreached" && verdict != "over";
}

/// The run is complete, as far as a program that ended with 0 said; one that says nothing is believed.
inline bool saw_the_end(std::string_view verdict) {
  return verdict.empty() || verdict == "complete" || verdict == "over";
}

/// The peer took part, and neither saw the end of the run nor was asked to leave it.
inline bool broke_off(std::string_view verdict) {
  return verdict == "begun" || verdict == "closed" || verdict == "failed";
}

/// Exit code of a peer by what it said, where the program's own exit code knows no better.
/// code: that of a program that ended by itself.
inline int exit_code(int code, std::string_view verdict) {
  if ((verdict == "lost" || verdict == "taken" || verdict == "differs") && code <= 1) return kNeedsPerson;
  if (verdict == "unsaved" && code == 0) return 1;
  if (verdict == "notice" && code == 0) return kGoesOn;
  if ((verdict == "condemned" || verdict == "unreached") && code <= 1) return kGoesOn;
  return code;
}

/// Why a peer failed with this exit code, for the end of a message; empty: its program knows.
inline std::string_view reason_of(int code, std::string_view verdict) {
  if (verdict == "unsaved" && code == 1) return ": its last checkpoint is missing";
  if (verdict == "differs" && code == kNeedsPerson) return ": other peers have other parameters";
  if (verdict == "lost" && code == kNeedsPerson) return ": nothing is left of the run";
  if (verdict == "taken" && code == kNeedsPerson) return ": another run trains in its folder";
  return "";
}

}  // namespace tw::launch
