// SPDX-License-Identifier: Apache-2.0
#include "sim/faults/fault_window.h"

#include <algorithm>

namespace tw::sim {
namespace {

using namespace std::chrono_literals;

/// A peer that is looked at less often is gone: longer than the longest interval between looks.
constexpr Duration kUnseen = 1s;

}  // namespace

void FaultWindow::on_strike(const Strike& strike) {
  const FaultRow& fault = row_of(strike.kind);
  if (fault.notice > Duration{}) {
    machines_ = std::max(machines_, strike.at + fault.notice);
  } else if (!fault.over_at_once() && strike.lasts == Duration{}) {
    until_calm_ = true;
  }
  quiet_ = std::max(quiet_, fault.over_at_once() ? strike.at : strike.at + strike.lasts);
}

void FaultWindow::on_calm(Instant at) {
  until_calm_ = false;
  quiet_ = at;
}

void Census::on_look(const Survivor& survivor) {
  if (!survivor.view.finished && survivor.view.failure.empty()) seen_[survivor.peer] = survivor.now;
}

bool Census::lives(PeerId peer, Instant now) const {
  const auto seen = seen_.find(peer);
  return seen != seen_.end() && now - seen->second < kUnseen;
}

Instant Census::last_gone(Instant now) const {
  Instant last{};
  for (const auto& [peer, at] : seen_) {
    if (now - at >= kUnseen) last = std::max(last, at);
  }
  return last;
}

bool Census::has_majority_of(const wire::Record& record, Instant now) const {
  const auto here = std::count_if(record.members.begin(), record.members.end(),
                                  [&](const wire::Member& member) { return lives(member.peer, now); });
  if (2 * here != std::ssize(record.members)) return 2 * here > std::ssize(record.members);
  return !record.members.empty() && lives(record.members.front().peer, now);
}

}  // namespace tw::sim
