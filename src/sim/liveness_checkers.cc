// SPDX-License-Identifier: Apache-2.0
#include "sim/liveness_checkers.h"

#include <fmt/format.h>

namespace tw {
namespace {

constexpr Duration kUnnamedWait = std::chrono::seconds(5);

/// The run is over, and this peer is no member.
bool is_left_behind(const Ledger& ledger, PeerId peer) {
  const Record* newest = ledger.newest();
  return newest != nullptr && newest->last && !has_member(*newest, peer);
}

}  // namespace

void RunEnds::on_end(std::span<const Survivor> survivors) {
  for (const Survivor& survivor : survivors) {
    if (survivor.view.finished || is_left_behind(ledger_, survivor.peer)) continue;
    violated(fmt::format("peer {} has not come beyond round {}; it waits for: {}", survivor.peer.value,
                         survivor.view.round, survivor.view.waiting.empty() ? "?" : survivor.view.waiting));
  }
}

void NobodyFails::on_look(const Survivor& survivor) {
  if (survivor.view.failure.empty() || is_left_behind(ledger_, survivor.peer)) return;
  violated(fmt::format("peer {} at round {}: {}", survivor.peer.value, survivor.view.round,
                       survivor.view.failure));
}

void WaitsAreNamed::on_look(const Survivor& survivor) {
  if (survivor.idle <= kUnnamedWait || !survivor.view.waiting.empty() || survivor.view.finished) return;
  if (!told_.insert(survivor.peer).second) return;
  violated(fmt::format("peer {} at round {} did nothing for {:.1f} s and does not say for whom it waits",
                       survivor.peer.value, survivor.view.round, to_seconds(survivor.idle)));
}

}  // namespace tw
