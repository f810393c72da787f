// SPDX-License-Identifier: Apache-2.0
#include "swarm/leases/leasing.h"

#include <algorithm>

#include "base/check.h"
#include "swarm/ballots/quorum.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

/// After this long an idle peer is sent its lease again, and a peer that did not answer a recall is asked
/// again.
constexpr Duration kTellAgain = 1s;

}  // namespace

Leasing::Leasing(LeaseRules rules, Options options)
    : rules_(std::move(rules)), options_(std::move(options)), book_(rules_) {}

bool Leasing::take_over(const PeerStatus& peers, const std::map<PeerId, wire::Promise>& promises,
                        bool was_called) {
  TW_CHECK(paces_.empty());
  bool slots_stay_open = !was_called;
  for (PeerId peer : peers.present()) {
    const auto promise = promises.find(peer);  // none: another peer keeps its seat and what it did
    if (promise == promises.end()) continue;
    slots_stay_open = book_.adopt(peer, promise->second.progress) && slots_stay_open;
  }
  if (std::ranges::any_of(book_.peers(), [this](PeerId peer) { return has_late(peer); }))
    slots_stay_open = false;
  if (!slots_stay_open) close();
  short_ = (was_called || has_moved_on()) && may_leave_over(peers);
  return short_;
}

void Leasing::begin_with(Instant now, const PeerStatus& peers, const std::vector<wire::Contribution>& ahead) {
  for (const wire::Contribution& c : ahead) {
    if (!peers.counts(c.peer) || !is_member(peers.members(), c.peer)) continue;
    book_.begin_with(c.peer, c.microbatches);
    pace_of(now, c.peer).leased_at = now;
  }
}

wire::BatchChoice Leasing::measured(const std::vector<wire::Member>& members, double averaging_s) const {
  wire::BatchChoice found;
  double longest_s = 0;
  for (const wire::Member& m : members) {
    const double speed = book_.samples_per_s(m.peer);
    const std::uint64_t at_once = rules_.microbatch * book_.grain(m.peer);
    found.samples_per_s += speed;
    found.at_once += at_once;
    if (speed > 0) longest_s = std::max(longest_s, static_cast<double>(at_once) / speed);
  }
  found.averaging_s = std::max(0.0, averaging_s - longest_s);
  return found;
}

std::vector<wire::Contribution> Leasing::ahead(const std::vector<PeerId>& peers,
                                               std::uint64_t microbatches) const {
  std::vector<wire::Contribution> all;
  for (LeaseBook::Grant& grant : book_.ahead(peers, microbatches))
    all.push_back({grant.peer, grant.slot, book_.samples(grant.microbatches), std::move(grant.microbatches)});
  return all;
}

void Leasing::close() {
  book_.close_slots(overlaps() ? wire::kLateSlot : 0);
  closed_ = true;
}

bool Leasing::has_company(const PeerStatus& peers) const {
  return peers.present().size() + peers.candidates().size() >= options_.wait_for;
}

// ---- what is said

void Leasing::on_progress(Instant now, const PeerStatus& peers, PeerId peer, const wire::Progress& progress,
                          bool called) {
  wire::Progress told = progress;
  if (called) told.gave_back = false;  // the plan counts on it: the peer will do it after all
  book_.report(peer, told);
  if (!called && peers.counts(peer)) book_.take_kept(peer, told);
  std::uint64_t done = 0;
  for (const wire::SlotProgress& slot : progress.slots) done += slot.done.count();
  Pace& pace = pace_of(now, peer);
  if (done != pace.done || !book_.holds(peer)) pace.since = now;
  pace.done = done;
  if (called) return;
  if (book_.is_recalled(peer)) {
    recall_again(now, peer, pace);
  } else if (peers.counts(peer)) {
    lease_again(now, peer, pace, progress);
  }
}

// The wait for a peer begins when this leader first hears of it or asks it for something: it may hold what a
// former leader gave it.
Leasing::Pace& Leasing::pace_of(Instant now, PeerId peer) {
  return paces_.try_emplace(peer, Pace{.since = now}).first->second;
}

// Its answer does not come: the recall, or the answer, was lost.
void Leasing::recall_again(Instant now, PeerId peer, Pace& pace) {
  if (now - std::max(pace.recalled_at, pace.asked_at) < kTellAgain) return;
  pace.asked_at = now;
  send(peer, wire::Recall{options_.round, options_.ballot, ++sent_});
}

// It is idle although something is leased to it: the lease did not reach it in this form.
void Leasing::lease_again(Instant now, PeerId peer, Pace& pace, const wire::Progress& progress) {
  const bool idle =
      progress.wants_more &&
      std::ranges::all_of(progress.slots, [](const wire::SlotProgress& slot) { return slot.held.empty(); });
  if (!idle) return;
  if (now - pace.leased_at < kTellAgain && !rarely(options_.rarely, "lead.lease_again")) return;
  wire::SlotProgress open = book_.open_slot(peer);
  if (open.held.empty()) return;
  pace.leased_at = now;
  send(peer, wire::Lease{options_.round, options_.ballot, open.slot, std::move(open.held), ++sent_,
                         has_moved_on()});
}

// ---- what goes out

// If no peer can compute what is free, the round ends without it, however much is missing.
bool Leasing::advance(Instant now, const PeerStatus& peers) {
  const bool was_short = short_;
  short_ = (short_ || has_moved_on()) && may_leave_over(peers);
  const bool ran_out = !short_ && book_.has_free() && slots_ran_out(peers) && may_leave_over(peers);
  short_ = short_ || ran_out;
  // The sums that are here were taken at other parameters than any new one would be.
  const bool others_would_differ = has_moved_on() && !contributions(peers).empty();
  if (!short_ && !others_would_differ) feed(now, peers);
  return short_ && !was_short;
}

bool Leasing::lets_skip(Instant now, const PeerStatus& peers, std::uint64_t microbatch) {
  std::optional<LeaseBook::Grant> grant = book_.grant_to_skip(peers.eligible(), microbatch);
  if (grant) send(now, std::move(*grant));
  return grant.has_value();
}

void Leasing::send(Instant now, LeaseBook::Grant grant) {
  Pace& pace = pace_of(now, grant.peer);
  if (pace.leased_at == Instant{}) pace.since = now;
  pace.leased_at = now;
  send(grant.peer, wire::Lease{options_.round, options_.ballot, grant.slot, std::move(grant.microbatches),
                               ++sent_, has_moved_on()});
}

void Leasing::feed(Instant now, const PeerStatus& peers) {
  if (!has_company(peers) || !held_back_for_.empty()) return;
  std::vector<LeaseBook::Grant> grants = book_.feed(peers.eligible(), options_.rarely);
  for (LeaseBook::Grant& grant : grants) send(now, std::move(grant));
  const bool at_will = !grants.empty() && rarely(options_.rarely, "lead.recall");
  if (const auto slow = book_.worth_recalling(peers.eligible(), at_will)) {
    pace_of(now, *slow).recalled_at = now;
    send(*slow, wire::Recall{options_.round, options_.ballot, ++sent_});
  }
}

// No peer can compute what is free. A round may begin with leases before anybody is heard.
bool Leasing::slots_ran_out(const PeerStatus& peers) const {
  if (overlaps() && peers.eligible().empty()) return false;
  return std::ranges::none_of(peers.eligible(), [&](PeerId peer) { return book_.has_slot(peer); });
}

// Work lost after the call is left to the next round: computing it again and sending it as another vector
// would take longer than the rest of this round.
bool Leasing::may_leave_over(const PeerStatus& peers) const {
  wire::Record rest;
  const std::vector<wire::Contribution> all = contributions(peers);
  for (const wire::Contribution& c : all) rest.samples += c.samples;
  if (slots_ran_out(peers)) rest.contributors = all;
  rest.last = last_;
  return book_.nearly_done() && rules_.may_leave_over(rest);
}

bool Leasing::is_complete() const { return book_.nearly_done() && (short_ || !book_.has_free()); }

// Sums of one record are of the same parameters. Those of before the call may be here again after others were
// leased: they count, and the work of the later ones is left over.
std::vector<wire::Contribution> Leasing::contributions(const PeerStatus& peers) const {
  std::vector<wire::Contribution> all = book_.contributions(peers.workers());
  const auto is_late = &wire::Contribution::is_late;
  if (overlaps() && !std::ranges::all_of(all, is_late))
    std::erase_if(all, [](const auto& c) { return c.is_late(); });
  return all;
}

bool Leasing::has_late(PeerId peer) const {
  return overlaps() && std::ranges::any_of(book_.contributions({peer}), &wire::Contribution::is_late);
}

// ---- what is lost

// Peers lost before still counted while a mean with their work existed; it does not exist any more.
RangeSet Leasing::forget(const PeerStatus& peers, PeerId peer) {
  RangeSet again = book_.forget(peer);
  for (PeerId other : book_.peers()) {
    if (!peers.counts(other)) again.add(book_.forget(other));
  }
  return again;
}

// Refused work is computed again by others in this round: it must not be put off for ever.
void Leasing::reopen(const PeerStatus& peers) {
  close();
  short_ = (overlaps() || !peers.has_refused()) && may_leave_over(peers);
}

std::optional<double> Leasing::seconds_left(const PeerStatus& peers, PeerId without) const {
  double speed = 0;
  for (PeerId peer : peers.eligible()) {
    if (peer == without || peers.leaves(peer) || peers.stance(peer).presence != wire::Presence::here)
      continue;
    if (book_.samples_per_s(peer) <= 0) return std::nullopt;
    speed += book_.samples_per_s(peer);
  }
  const std::uint64_t left = book_.left_of_others(without) * rules_.microbatch;
  if (speed <= 0) return std::nullopt;
  return static_cast<double>(left) / speed;
}

std::vector<Awaited> Leasing::awaited(Instant now) const {
  std::vector<Awaited> awaited;
  for (const auto& [peer, pace] : paces_) {
    const bool recalled = book_.is_recalled(peer);
    if (!recalled && (!book_.holds(peer) || book_.has_free())) continue;
    const double speed = book_.samples_per_s(peer);
    std::optional<Duration> usual;
    const std::uint64_t at_once = rules_.microbatch * book_.grain(peer);
    if (speed > 0) usual = from_seconds(static_cast<double>(at_once) / speed);
    awaited.push_back({peer, now - (recalled ? pace.recalled_at : pace.since), usual});
  }
  return awaited;
}

}  // namespace tw::swarm
