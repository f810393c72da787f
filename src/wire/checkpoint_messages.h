// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "wire/record.h"

/// Messages between peers that have no state yet, of a run that had begun: which checkpoint goes on?
namespace tw::wire {

/// From the peer that founds the run, while it waits for one with the state: which checkpoint does the
/// receiver hold? `resume`: the record of that checkpoint; the receiver begins the history again from it.
struct AskCheckpoint {
  Digest resume{};  ///< zero: it only asks

  static void fields(auto& self, auto&& field) { field(self.resume); }

  bool operator==(const AskCheckpoint&) const = default;
};

/// The newest sound checkpoint of the run in the sender's folders.
struct HeldCheckpoint {
  std::optional<Record> record;  ///< nothing: it has none
  Digest origin{};               ///< record from whose checkpoint its history was resumed; zero: none

  static void fields(auto& self, auto&& field) { field(self.record, self.origin); }

  bool operator==(const HeldCheckpoint&) const = default;
};

}  // namespace tw::wire
