// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/evaluations.h"

#include <algorithm>
#include <utility>

namespace tw::monitor {

void Evaluations::take(const Seen& seen) {
  const auto* told = seen.event().as<event::Evaluate>();
  if (told && told->value) keep({seen.event().round, seen.at_s, seen.writer(), told->name, *told->value});
}

void Evaluations::take(const wire::Status& status) {
  for (BoardEvaluation evaluation : status.evaluations) {
    evaluation.peer = status.peer.peer;  // nobody speaks for others
    keep(std::move(evaluation));
  }
}

void Evaluations::keep(BoardEvaluation evaluation) {
  const Key key(evaluation.round, evaluation.name, evaluation.peer);
  const auto known = all_.find(key);
  if (known != all_.end() && known->second.at_s >= evaluation.at_s) return;
  all_.insert_or_assign(key, std::move(evaluation));
  if (all_.size() > most_) all_.erase(all_.begin());
}

void Evaluations::rewind(Round to) {
  std::erase_if(all_, [&](const auto& entry) { return entry.second.round > to; });
}

std::vector<BoardEvaluation> Evaluations::board() const {
  std::vector<BoardEvaluation> sorted;
  for (const auto& [key, evaluation] : all_) sorted.push_back(evaluation);
  return sorted;
}

std::vector<BoardEvaluation> Evaluations::told_by(PeerId peer) const {
  std::vector<BoardEvaluation> told;
  for (auto entry = all_.rbegin(); entry != all_.rend() && told.size() < kMostTold; ++entry)
    if (entry->second.peer == peer) told.push_back(entry->second);
  std::ranges::reverse(told);
  return told;
}

}  // namespace tw::monitor
