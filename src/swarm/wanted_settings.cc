// SPDX-License-Identifier: Apache-2.0
#include "swarm/wanted_settings.h"

#include <algorithm>

namespace tw::swarm {

void WantedSettings::hear(PeerId peer, const wire::Progress& told) {
  const auto is_done = [](const wire::SlotProgress& slot) { return !slot.done.empty(); };
  if (std::ranges::any_of(told.slots, is_done)) {
    wanted_[peer] = told.settings;
  } else if (!told.settings.empty()) {
    wanted_.try_emplace(peer);
  }
}

bool WantedSettings::are_known(bool in_first_round) const {
  const auto is_known = [](const auto& told) { return told.second.has_value(); };
  return (wanted_.empty() && !in_first_round) || std::ranges::any_of(wanted_, is_known);
}

std::string WantedSettings::of(const std::vector<wire::Contribution>& contributors) const {
  for (const wire::Contribution& c : contributors) {
    const auto told = wanted_.find(c.peer);
    if (told != wanted_.end() && told->second) return *told->second;
  }
  return {};
}

}  // namespace tw::swarm
