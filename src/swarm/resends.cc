// SPDX-License-Identifier: Apache-2.0
#include "swarm/resends.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstPause = 1s;

}  // namespace

void Resends::ask(Instant now, PeerId peer) {
  const auto [entry, first] = asked_.try_emplace(peer, Asked{true, now, kFirstPause});
  if (!first) entry->second.waits = true;
}

bool Resends::take_due(Instant now, PeerId peer) {
  const auto found = asked_.find(peer);
  if (found == asked_.end() || !found->second.waits || now < found->second.next) return false;
  const Duration pause = found->second.pause;
  found->second = {false, now + pause, 2 * pause};
  return true;
}

}  // namespace tw::swarm
