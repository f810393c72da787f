// SPDX-License-Identifier: Apache-2.0
#include "swarm/leases/lease_book.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "wire/limits.h"

namespace tw::swarm {

LeaseBook::LeaseBook(LeaseRules rules) : rules_(std::move(rules)), free_(Range{0, rules_.microbatches}) {
  TW_CHECK(rules_.samples && rules_.grant && rules_.may_leave_over);
}

std::uint64_t LeaseBook::Account::held() const {
  std::uint64_t n = 0;
  for (const auto& [slot, entry] : slots) n += entry.held.count();
  return n;
}

void LeaseBook::take(Account& account, const wire::Progress& progress) {
  account.samples_per_s = std::isfinite(progress.samples_per_s) ? std::max(0.0, progress.samples_per_s) : 0;
  account.grain = progress.grain;
  account.hungry = progress.wants_more && !progress.leaving;
  if (progress.gave_back) account.recalled = false;
}

void LeaseBook::report(PeerId peer, const wire::Progress& progress) {
  Account& account = account_of(peer);
  take(account, progress);
  for (const wire::SlotProgress& told : progress.slots) {
    const auto found = account.slots.find(told.slot);
    if (found == account.slots.end()) continue;
    wire::SlotProgress& known = found->second;
    RangeSet finished = known.held;  // only what was leased to it can be done by it
    RangeSet unfinished = known.held;
    unfinished.remove(told.done);
    finished.remove(unfinished);
    known.done.add(finished);
    known.held = unfinished;
  }
  if (!progress.gave_back) return;
  for (auto& [slot, known] : account.slots) {
    RangeSet returned = known.held;
    for (const wire::SlotProgress& told : progress.slots) {
      if (told.slot == slot) returned.remove(told.held);
    }
    known.held.remove(returned);
    free_.add(returned);
  }
  // Returned microbatches are for idle peers; it asks again when it is idle itself.
  if (account.held() > 0) account.hungry = false;
}

bool LeaseBook::adopt(PeerId peer, const wire::Progress& progress) {
  Account& account = account_of(peer);
  take(account, progress);
  bool all_count = true;
  for (wire::SlotProgress told : progress.slots) {
    RangeSet all = told.done;
    all.add(told.held);
    const bool kept = told.slot >= wire::kLeaseSlots;
    // The first of two peers that report the same microbatch keeps it (I3).
    if (told.slot >= wire::kMostSlots || all.empty() || !free_.contains(all) ||
        account.slots.contains(told.slot)) {
      all_count = false;
      if (!kept) account.open = std::max(account.open, told.slot + 1);
      continue;
    }
    if (!kept) account.open = std::max(account.open, told.slot);
    free_.remove(all);
    account.slots[told.slot] = std::move(told);
  }
  return all_count;
}

void LeaseBook::begin_with(PeerId peer, const RangeSet& microbatches) {
  TW_CHECK(!accounts_.contains(peer));
  Account& account = account_of(peer);
  lease(account, microbatches);
}

std::vector<LeaseBook::Grant> LeaseBook::ahead(const std::vector<PeerId>& peers,
                                               std::uint64_t microbatches) const {
  const double speed_of_all = speed_of({peers.begin(), peers.end()});
  std::vector<Grant> grants;
  std::uint64_t next = 0;
  double fair = 0;  // of the peers until here: what one gets less than its part, the following ones get
  for (const PeerId peer : peers) {
    fair += speed_of_all > 0 ? samples_per_s(peer) / speed_of_all : 1.0 / static_cast<double>(peers.size());
    const auto until = static_cast<std::uint64_t>(std::llround(fair * static_cast<double>(microbatches)));
    const std::uint64_t part = std::max(until, next) - next, given = part - part % grain(peer);
    if (given > 0) grants.push_back({peer, 0, RangeSet(Range{next, given})});
    next += given;
  }
  return grants;
}

void LeaseBook::take_kept(PeerId peer, const wire::Progress& progress) {
  for (const wire::SlotProgress& told : progress.slots) {
    const bool kept = told.slot >= wire::kLeaseSlots && told.slot < wire::kMostSlots && !told.done.empty();
    if (!kept || account_of(peer).slots.contains(told.slot)) continue;
    if (free_.contains(told.done)) {
      free_.remove(told.done);
    } else if (!take_from_giver(peer, told.done)) {
      continue;
    }
    account_of(peer).slots[told.slot] = {told.slot, told.done, {}};
  }
}

// The giver's sum stays where it is, and nothing is added to it.
bool LeaseBook::take_from_giver(PeerId taker, const RangeSet& done) {
  for (auto& [peer, account] : accounts_) {
    for (const auto& [number, slot] : account.slots) {
      if (peer == taker || slot.done != done || !slot.held.empty()) continue;
      if (number < wire::kLeaseSlots) account.open = std::max(account.open, number + 1);
      account.slots.erase(number);
      return true;
    }
  }
  return false;
}

bool LeaseBook::has_any(PeerId peer) const {
  const auto found = accounts_.find(peer);
  return found != accounts_.end() && std::ranges::any_of(found->second.slots, [](const auto& entry) {
           return !entry.second.done.empty() || !entry.second.held.empty();
         });
}

std::size_t LeaseBook::sums_of(PeerId peer) const {
  const auto found = accounts_.find(peer);
  if (found == accounts_.end()) return 0;
  return static_cast<std::size_t>(std::ranges::count_if(
      found->second.slots, [](const auto& entry) { return !entry.second.done.empty(); }));
}

std::size_t LeaseBook::kept_by(PeerId peer) const {
  const auto found = accounts_.find(peer);
  if (found == accounts_.end()) return 0;
  return static_cast<std::size_t>(std::ranges::count_if(
      found->second.slots, [](const auto& entry) { return entry.first >= wire::kLeaseSlots; }));
}

std::uint64_t LeaseBook::left_of_others(PeerId peer) const {
  std::uint64_t left = free_.count();
  for (const auto& [other, account] : accounts_) left += other == peer ? 0 : account.held();
  return left;
}

void LeaseBook::note_failures(PeerId peer, const wire::Failures& failures) {
  wire::Failures& known = failures_[peer];
  if (!known.microbatches.contains(failures.microbatches)) last_failed_ = peer;
  known.microbatches.add(failures.microbatches);
  known.skippable = failures.skippable;
  known.why = failures.why;
}

std::vector<PeerId> LeaseBook::failed_at(std::uint64_t microbatch) const {
  std::vector<PeerId> peers;
  for (const auto& [peer, told] : failures_)
    if (told.microbatches.contains(microbatch)) peers.push_back(peer);
  return peers;
}

RangeSet LeaseBook::free_for(PeerId peer) const {
  RangeSet fit = free_;
  if (const auto told = failures_.find(peer); told != failures_.end()) fit.remove(told->second.microbatches);
  if (failures_.size() < kMostFailed) return fit;
  RangeSet tried;
  for (const auto& [other, told] : failures_) tried.add(told.microbatches);
  while (!tried.empty()) {
    const RangeSet one = tried.take(1);
    if (failed_at(one.ranges().front().first).size() >= kMostFailed) fit.remove(one);
  }
  return fit;
}

std::optional<LeaseBook::Hopeless> LeaseBook::hopeless(const std::set<PeerId>& able) const {
  RangeSet tried;
  for (const auto& [peer, told] : failures_) tried.add(told.microbatches);
  while (!tried.empty()) {
    const std::uint64_t microbatch = tried.take(1).ranges().front().first;
    if (!free_.contains(microbatch)) continue;
    const std::vector<PeerId> failed = failed_at(microbatch);
    const auto has_failed = [&](PeerId peer) { return std::ranges::count(failed, peer) > 0; };
    const bool nobody_else = !able.empty() && std::ranges::all_of(able, has_failed);
    if (failed.size() < kMostFailed && !nobody_else) continue;
    // Usually the last peer with a failure failed at this; others may have failed elsewhere since.
    const PeerId tells = has_failed(last_failed_) ? last_failed_ : failed.front();
    return Hopeless{microbatch, failed, failures_.at(tells).why};
  }
  return std::nullopt;
}

bool LeaseBook::may_skip(PeerId peer, std::uint64_t microbatch) const {
  const auto told = failures_.find(peer);
  return told != failures_.end() && told->second.skippable.contains(microbatch) && has_slot(peer);
}

std::optional<LeaseBook::Grant> LeaseBook::grant_to_skip(const std::set<PeerId>& eligible,
                                                         std::uint64_t microbatch) {
  if (!free_.contains(microbatch)) return std::nullopt;
  const RangeSet one(Range{microbatch, 1});
  for (auto& [peer, account] : accounts_) {
    const bool asks = account.hungry && !account.recalled && eligible.contains(peer);
    if (!asks || !may_skip(peer, microbatch)) continue;
    lease(account, one);
    return Grant{peer, account.open, one};
  }
  return std::nullopt;
}

// I3: each microbatch of the round is free, or in one slot of one account. Only a closed slot's number grows,
// so that a sum that was sent stays the sum of the same microbatches.
void LeaseBook::lease(Account& account, const RangeSet& given) {
  TW_CHECK(account.open < wire::kLeaseSlots && free_.contains(given));
  free_.remove(given);
  wire::SlotProgress& entry = account.slots[account.open];
  entry.slot = account.open;
  entry.held.add(given);
  account.hungry = false;
}

RangeSet LeaseBook::forget(PeerId peer) {
  RangeSet returned;
  if (const auto told = failures_.find(peer); told != failures_.end()) {
    told->second.microbatches.remove(told->second.skippable);
    told->second.skippable = {};
  }
  const auto found = accounts_.find(peer);
  if (found == accounts_.end()) return returned;
  for (const auto& [slot, entry] : found->second.slots) {
    returned.add(entry.done);
    returned.add(entry.held);
  }
  accounts_.erase(found);
  free_.add(returned);
  return returned;
}

std::uint64_t LeaseBook::grant_size(const Account& account, double speed_of_all, std::size_t peers) const {
  const double part =
      speed_of_all > 0 ? account.samples_per_s / speed_of_all : 1.0 / static_cast<double>(peers);
  const std::uint64_t fair = rules_.grant(part, free_.count());
  return std::max(account.grain, fair - fair % account.grain);
}

double LeaseBook::speed_of(const std::set<PeerId>& peers) const {
  double all = 0;
  for (PeerId peer : peers) {
    const double speed = samples_per_s(peer);
    if (speed <= 0) return 0;
    all += speed;
  }
  return all;
}

std::vector<LeaseBook::Grant> LeaseBook::feed(const std::set<PeerId>& eligible, const Rarely& chance) {
  if (free_.empty()) return {};
  std::vector<std::pair<std::uint64_t, PeerId>> hungry;
  for (const auto& [peer, account] : accounts_) {
    const bool asks = account.hungry && !account.recalled && account.open < wire::kLeaseSlots;
    if (!asks || !eligible.contains(peer)) continue;
    hungry.emplace_back(account.held(), peer);
  }
  if (hungry.empty()) return {};
  const double speed_of_all = speed_of(eligible);
  std::sort(hungry.begin(), hungry.end());  // idle peers come before those that only ask ahead
  std::vector<Grant> grants;
  for (const auto& [held, peer] : hungry) {
    if (free_.empty()) break;
    Account& account = accounts_.at(peer);
    const bool one = rarely(chance, "lead.lease_one");
    RangeSet fit = free_for(peer);
    if (fit.empty()) continue;
    RangeSet given = fit.take(one ? 1 : grant_size(account, speed_of_all, eligible.size()));
    lease(account, given);
    grants.push_back({peer, account.open, std::move(given)});
  }
  return grants;
}

std::optional<PeerId> LeaseBook::worth_recalling(const std::set<PeerId>& eligible, bool at_will) {
  if (!free_.empty() && !at_will) return std::nullopt;
  const bool somebody_idle = std::any_of(accounts_.begin(), accounts_.end(), [&](const auto& entry) {
    return entry.second.hungry && entry.second.held() == 0 && eligible.contains(entry.first);
  });
  if (!somebody_idle && !at_will) return std::nullopt;
  const auto time_left = [](const Account& account) {
    return static_cast<double>(account.held()) / std::max(1e-9, account.samples_per_s);
  };
  auto slowest = accounts_.end();
  for (auto entry = accounts_.begin(); entry != accounts_.end(); ++entry) {
    if (entry->second.held() < 2 * entry->second.grain || entry->second.recalled) continue;
    if (slowest == accounts_.end() || time_left(entry->second) > time_left(slowest->second)) slowest = entry;
  }
  if (slowest == accounts_.end()) return std::nullopt;
  slowest->second.recalled = true;
  return slowest->first;
}

bool LeaseBook::nearly_done() const {
  const auto tries_again = [&](const auto& slot) {
    return std::ranges::any_of(failures_, [&](const auto& failed) {
      return slot.second.held.intersects(failed.second.microbatches);
    });
  };
  return std::all_of(accounts_.begin(), accounts_.end(), [&](const auto& entry) {
    return entry.second.held() <= entry.second.grain && !entry.second.recalled &&
           std::ranges::none_of(entry.second.slots, tries_again);
  });
}

std::vector<wire::Contribution> LeaseBook::contributions(const std::vector<PeerId>& order) const {
  std::vector<wire::Contribution> all;
  for (PeerId peer : order) {
    const auto found = accounts_.find(peer);
    if (found == accounts_.end()) continue;
    for (const auto& [slot, entry] : found->second.slots) {
      RangeSet microbatches = entry.done;
      microbatches.add(entry.held);
      if (microbatches.empty()) continue;
      all.push_back({peer, slot, samples(microbatches), microbatches});
    }
  }
  return all;
}

void LeaseBook::close_slots(std::uint32_t next) {
  first_slot_ = std::max(first_slot_, next);
  for (auto& [peer, account] : accounts_) {
    if (account.slots.contains(account.open)) ++account.open;
    account.open = std::max(account.open, first_slot_);
  }
}

LeaseBook::Account& LeaseBook::account_of(PeerId peer) {
  return accounts_.try_emplace(peer, Account{.open = first_slot_}).first->second;
}

bool LeaseBook::has_slot(PeerId peer) const {
  const auto found = accounts_.find(peer);
  return found == accounts_.end() || found->second.open < wire::kLeaseSlots;
}

std::vector<PeerId> LeaseBook::peers() const {
  std::vector<PeerId> all;
  for (const auto& [peer, account] : accounts_) all.push_back(peer);
  return all;
}

std::vector<PeerId> LeaseBook::holders() const {
  std::vector<PeerId> all;
  for (const auto& [peer, account] : accounts_) {
    if (account.held() > 0) all.push_back(peer);
  }
  return all;
}

bool LeaseBook::is_recalled(PeerId peer) const {
  const auto found = accounts_.find(peer);
  return found != accounts_.end() && found->second.recalled;
}

bool LeaseBook::holds(PeerId peer) const {
  const auto found = accounts_.find(peer);
  return found != accounts_.end() && found->second.held() > 0;
}

wire::SlotProgress LeaseBook::open_slot(PeerId peer) const {
  const auto found = accounts_.find(peer);
  if (found == accounts_.end()) return {first_slot_, {}, {}};
  const auto entry = found->second.slots.find(found->second.open);
  return entry == found->second.slots.end() ? wire::SlotProgress{found->second.open, {}, {}} : entry->second;
}

std::uint64_t LeaseBook::grain(PeerId peer) const {
  const auto found = accounts_.find(peer);
  return found == accounts_.end() ? 1 : found->second.grain;
}

double LeaseBook::samples_per_s(PeerId peer) const {
  const auto found = accounts_.find(peer);
  return found == accounts_.end() ? 0 : found->second.samples_per_s;
}

}  // namespace tw::swarm
