// SPDX-License-Identifier: Apache-2.0
#include "train/session/search/held_elsewhere.h"

#include <algorithm>

namespace tw::train {

std::vector<PeerId> HeldElsewhere::due(Instant now, const std::vector<PeerId>& linked) {
  std::erase_if(peers_, [&](const auto& entry) { return std::ranges::count(linked, entry.first) == 0; });
  std::vector<PeerId> peers;
  for (const PeerId peer : linked) {
    const auto [known, is_new] = peers_.try_emplace(peer, Known{.asked_since = now});
    if (known->second.answered || (!is_new && now - known->second.asked_at < kAskAgain)) continue;
    known->second.asked_at = now;
    peers.push_back(peer);
  }
  return peers;
}

// One that was to resume and could not tells what it holds now.
void HeldElsewhere::on_answer(PeerId from, const wire::HeldCheckpoint& held) {
  const auto known = peers_.find(from);
  if (known == peers_.end()) return;
  known->second = Known{.asked_since = known->second.asked_since, .answered = true};
  if (!held.record) return;
  sync::LoadedCheckpoint checkpoint;
  checkpoint.image.record = *held.record;
  checkpoint.origin = held.origin;
  known->second.held = std::move(checkpoint);
}

bool HeldElsewhere::awaits_answers(Instant now) const {
  return std::ranges::any_of(peers_, [&](const auto& entry) {
    return !entry.second.answered && now - entry.second.asked_since < patience_;
  });
}

bool HeldElsewhere::has_failed(Instant now, const Known& known) const {
  return known.told_since != kNever && now - known.told_since >= patience_;
}

std::optional<HeldElsewhere::Heir> HeldElsewhere::heir(Instant now, const sync::LoadedCheckpoint* own) {
  const sync::LoadedCheckpoint* best = own;
  awaited_.reset();
  for (const auto& [peer, known] : peers_) {
    if (!known.held || has_failed(now, known)) continue;
    if (best != nullptr && !sync::is_newer(*known.held, *best)) continue;
    best = &*known.held;
    awaited_ = peer;
  }
  if (!awaited_) return std::nullopt;
  Known& chosen = peers_.at(*awaited_);
  const bool is_due = chosen.told_since == kNever || now - chosen.told_at >= kAskAgain;
  chosen.told_since = std::min(chosen.told_since, now);
  if (is_due) chosen.told_at = now;
  return Heir{*awaited_, chosen.held->image.record, is_due};
}

}  // namespace tw::train
