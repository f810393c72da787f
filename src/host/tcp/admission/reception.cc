// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/admission/reception.h"

#include <fmt/format.h>

namespace tw::host {

std::optional<Refusal> Reception::admit(PeerId peer, const Frame& hello) {
  const world::Admission admission = events_.admit(hello);
  if (const auto* refusal = std::get_if<world::Refusal>(&admission))
    return Refusal{Verdict::refuse, *refusal};
  const PeerId admitted = std::get<PeerId>(admission);
  if (admitted != peer) {
    return Refusal{Verdict::refuse,
                   {fmt::format("the hello is from peer {}, the connection from peer {}", to_string(admitted),
                                to_string(peer))}};
  }
  if (peer == self_) return Refusal{Verdict::refuse, {"that is this peer itself"}};
  if (linked_.contains(peer) || claimed_.contains(peer))
    return Refusal{Verdict::duplicate, {"already connected"}};
  if (self_ < peer) claimed_.insert(peer);
  return std::nullopt;
}

bool Reception::open(PeerId peer) {
  claimed_.erase(peer);
  return linked_.insert(peer).second;
}

}  // namespace tw::host
