// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace tw::event {

/// The kind of event where its phase has several; refusals (Phase::refuse) are counted by cause.
enum class Cause {
  none,         ///< none of these
  silent,       ///< a stranger sent nothing
  slow,         ///< a stranger took too long to prove that it belongs to the run
  crowded,      ///< there were too many strangers
  broken,       ///< a stranger's connection ended before that proof
  nonsense,     ///< a stranger does not follow the protocol
  credential,   ///< the two have no valid token in common, or only one side uses TLS
  version,      ///< another version of the protocol
  parameters,   ///< another model
  run,          ///< another run
  taken,        ///< a peer id that another process has
  self,         ///< this peer reached itself
  dial,         ///< a dial failed, or was refused there
  message,      ///< a peer sent what cannot be read or used
  own,          ///< an unusable contribution or state of this peer; it cannot take in connections
  verdict,      ///< lost: nothing that the peer computed enters the round, but it stays and gets the mean
  checkpoint,   ///< restore: the state is from a checkpoint, not from other peers
  preempt,      ///< notice: the machine goes at its deadline
  at_risk,      ///< notice: it may go soon
  maintenance,  ///< notice: it stops at its deadline
  freeze,       ///< notice: it stands still for some seconds from its deadline on
  failed,       ///< checkpoint, copy: it was not made
  skipped,      ///< checkpoint: this one cannot be read, and an older one is taken
  sample,       ///< reissue: another peer gets a sample that this one cannot compute
  minority,     ///< commit: decided without a majority of the members
  anew,         ///< restore: from its own state, for no member of the run was reached
};

/// In the order of the constants.
inline constexpr std::array<std::string_view, 26> kCauseNames = {
    "",        "silent",     "slow",       "crowded",  "broken",  "nonsense",    "credential",
    "version", "parameters", "run",        "taken",    "self",    "dial",        "message",
    "own",     "verdict",    "checkpoint", "preempt",  "at_risk", "maintenance", "freeze",
    "failed",  "skipped",    "sample",     "minority", "anew"};

static_assert(kCauseNames.size() == static_cast<std::size_t>(Cause::anew) + 1);

inline std::string_view name_of(Cause cause) { return kCauseNames.at(static_cast<std::size_t>(cause)); }

}  // namespace tw::event
