// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "wire/messages.h"

namespace tw::swarm {

/// Settings that the peers' programs want for the update of one round (wire::Record::settings).
class WantedSettings {
 public:
  /// The peer reports its progress in the round.
  void hear(PeerId peer, const wire::Progress& told);

  /// A call may come before any gradient of the round, so before any program said what it wants. It waits for
  /// the first one where programs wanted something in the round before, and in the first round.
  bool are_known(bool in_first_round) const;

  /// One peer decides, since values that differ have no mean that all would accept: the first one of the mean
  /// that has handed in something, so that its program is at this round. It need not be the leader, whose
  /// program may do something else.
  std::string of(const std::vector<wire::Contribution>& contributors) const;

  /// Number of peers that it knows.
  std::size_t size() const { return wanted_.size(); }

 private:
  std::map<PeerId, std::optional<std::string>> wanted_;  // none: wanted some before, and has done nothing yet
};

}  // namespace tw::swarm
