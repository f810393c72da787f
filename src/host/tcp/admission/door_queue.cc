// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/admission/door_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tw::host {

DoorQueue::Rules DoorQueue::Rules::within(std::uint64_t descriptors) {
  Rules rules;
  const auto share = [descriptors](std::uint64_t part, std::size_t most) {
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(descriptors / part, 4, most));
  };
  rules.most_waiting = share(8, rules.most_waiting);
  rules.most_served = share(16, rules.most_served);
  return rules;
}

DoorQueue::DoorQueue(const Rules& rules) : rules_(rules) {
  rules_.first_byte = std::min(rules_.first_byte, rules_.whole);
}

void DoorQueue::know(const std::string& host) {
  if (!known_.insert(host).second) return;
  known_in_order_.push_back(host);
  if (known_in_order_.size() > kMostKnown) {
    known_.erase(known_in_order_.front());
    known_in_order_.pop_front();
  }
  const auto here = hosts_.find(host);
  if (here == hosts_.end() || here->second.known) return;
  here->second.known = true;
  rows_[0].waiting -= here->second.waiting;
  rows_[0].served -= here->second.served;
  rows_[1].waiting += here->second.waiting;
  rows_[1].served += here->second.served;
}

void DoorQueue::arrive(Instant now, Serial stranger, const std::string& host) {
  const auto from = hosts_.try_emplace(host, Host{known_.contains(host), 0, 0}).first;
  TW_CHECK(strangers_.empty() || strangers_.back().serial < stranger);
  const Stranger& here = strangers_.emplace_back(Stranger{stranger, from, Stage::silent, now});
  count(here, 1);
  if (row_of(here).waiting > rules_.most_waiting)
    dismiss(*oldest_waiting(from->second.known), Reason::crowded);
}

DoorQueue::Stranger* DoorQueue::find(Serial stranger) {
  const auto found = std::ranges::lower_bound(strangers_, stranger, {}, &Stranger::serial);
  return found != strangers_.end() && found->serial == stranger ? &*found : nullptr;
}

void DoorQueue::spoke(Serial stranger) {
  Stranger* const found = find(stranger);
  if (found != nullptr && found->stage == Stage::silent) found->stage = Stage::ready;
}

void DoorQueue::failed(Serial stranger) {
  Stranger* const found = find(stranger);
  if (found != nullptr && found->stage == Stage::served) found->stage = Stage::leaving;
}

void DoorQueue::leave(Serial stranger) {
  const Stranger* const found = find(stranger);
  if (found == nullptr) return;
  count(*found, -1);
  const auto host = found->host;
  strangers_.erase(strangers_.begin() + (found - strangers_.data()));
  if (host->second.waiting + host->second.served == 0) hosts_.erase(host);
}

bool DoorQueue::make_room() {
  for (const bool known : {false, true}) {
    auto stranger = oldest_waiting(known);
    if (!stranger && !known) stranger = oldest_served(known, kNever);
    if (!stranger) continue;
    dismiss(*stranger, Reason::crowded);
    return true;
  }
  return false;
}

DoorQueue::Decisions DoorQueue::step(Instant now) {
  std::vector<Dismissal> late;
  for (const Stranger& stranger : strangers_) {
    if (now - stranger.arrived < rules_.first_byte) break;  // those after it came later
    if (now - stranger.arrived >= limit_of(stranger))
      late.push_back({stranger.serial, stranger.stage == Stage::silent ? Reason::silent : Reason::slow});
  }
  for (const Dismissal& one : late) dismiss(one.stranger, one.reason);
  std::vector<Serial> turns;
  give_turns(now, true, turns);
  give_turns(now, false, turns);
  return {std::exchange(dismissed_, {}), std::move(turns)};
}

Instant DoorQueue::next_step() const {
  if (!dismissed_.empty()) return Instant{};
  Instant next = kNever;
  for (const Stranger& stranger : strangers_) {
    next = std::min(next, stranger.arrived + limit_of(stranger));
    if (stranger.stage == Stage::silent) break;  // those after it came later
  }
  for (const bool known : {false, true})
    if (next_ready(known)) next = std::min(next, next_turn(known));
  return next;
}

/// After a pause as many turns are due at once as a burst has; with all places taken, not before one of those
/// who have them can make room.
Instant DoorQueue::next_turn(bool known) const {
  const Row& row = rows_[known ? 1 : 0];
  const Instant by_pace = row.next_turn - (rules_.burst - 1) * pace_of(known);
  if (row.served < rules_.most_served) return by_pace;
  Instant by_room = kNever;
  for (const Stranger& stranger : strangers_) {
    if (stranger.host->second.known != known) continue;
    if (stranger.stage == Stage::leaving) return by_pace;
    if (stranger.stage == Stage::served) by_room = std::min(by_room, stranger.turn + rules_.grace);
  }
  return std::max(by_pace, by_room);
}

/// The oldest stranger of the host with most of them waiting. Half of its places are for those that are
/// silent still, half for those that said something: neither kind can push out the other.
std::optional<DoorQueue::Serial> DoorQueue::oldest_waiting(bool known) const {
  const Host* fullest = nullptr;
  for (const Stranger& stranger : strangers_) {
    const Host& host = stranger.host->second;
    if (host.known == known && host.waiting > (fullest != nullptr ? fullest->waiting : 0)) fullest = &host;
  }
  if (fullest == nullptr) return std::nullopt;
  std::optional<Serial> silent, ready;
  std::size_t silent_ones = 0;
  for (const Stranger& stranger : strangers_) {
    if (&stranger.host->second != fullest) continue;
    if (stranger.stage == Stage::silent && ++silent_ones == 1) silent = stranger.serial;
    if (stranger.stage == Stage::ready && !ready) ready = stranger.serial;
  }
  return silent && (!ready || 2 * silent_ones >= fullest->waiting) ? silent : ready;
}

/// One that failed, or else of the host with most strangers being served the one that has been served
/// longest.
std::optional<DoorQueue::Serial> DoorQueue::oldest_served(bool known, Instant turned_by) const {
  const Stranger* oldest = nullptr;
  const auto goes_before = [](const Stranger& a, const Stranger& b) {
    if (a.stage != b.stage) return a.stage == Stage::leaving;
    if (a.host->second.served != b.host->second.served) return a.host->second.served > b.host->second.served;
    return a.turn < b.turn;
  };
  for (const Stranger& one : strangers_) {
    const bool in_grace = one.stage == Stage::served && one.turn > turned_by;
    const bool served = one.stage == Stage::served || one.stage == Stage::leaving;
    if (!served || in_grace || one.host->second.known != known) continue;
    if (oldest == nullptr || goes_before(one, *oldest)) oldest = &one;
  }
  return oldest != nullptr ? std::optional(oldest->serial) : std::nullopt;
}

/// The newest stranger of the host with the fewest being served.
std::optional<DoorQueue::Serial> DoorQueue::next_ready(bool known) const {
  const Stranger* next = nullptr;
  for (const Stranger& one : strangers_) {
    if (one.stage != Stage::ready || one.host->second.known != known) continue;
    if (next == nullptr || one.host->second.served <= next->host->second.served) next = &one;
  }
  return next != nullptr ? std::optional(next->serial) : std::nullopt;
}

void DoorQueue::give_turns(Instant now, bool known, std::vector<Serial>& turns) {
  Row& row = rows_[known ? 1 : 0];
  for (auto next = next_ready(known); next && next_turn(known) <= now; next = next_ready(known)) {
    if (row.served >= rules_.most_served) dismiss(*oldest_served(known, now - rules_.grace), Reason::crowded);
    row.next_turn = std::max(row.next_turn, now) + pace_of(known);
    Stranger& stranger = *find(*next);
    count(stranger, -1);
    stranger.stage = Stage::served;
    stranger.turn = now;
    count(stranger, 1);
    turns.push_back(*next);
  }
}

void DoorQueue::dismiss(Serial stranger, Reason reason) {
  leave(stranger);
  dismissed_.push_back({stranger, reason});
}

void DoorQueue::count(const Stranger& stranger, int change) {
  const bool waits = stranger.stage == Stage::silent || stranger.stage == Stage::ready;
  const auto places = waits ? &Host::waiting : &Host::served;
  const auto row_places = waits ? &Row::waiting : &Row::served;
  stranger.host->second.*places += static_cast<std::size_t>(change);
  row_of(stranger).*row_places += static_cast<std::size_t>(change);
}

}  // namespace tw::host
