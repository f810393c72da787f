// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Exit codes of a peer by which a launcher decides about another start (docs/launch.md).
namespace tw::launch {

/// It left on a notice, or by SIGTERM: its run goes on, and it may come back (EX_TEMPFAIL of sysexits.h).
inline constexpr int kGoesOn = 75;

/// It needs a person: its options are wrong, nothing is left of its run, another run trains in its folder, or
/// the run is complete and other peers have other parameters.
inline constexpr int kNeedsPerson = 2;

}  // namespace tw::launch
