// SPDX-License-Identifier: Apache-2.0
#include "train/session/search/peer_search.h"

#include <algorithm>

#include "base/check.h"

namespace tw::train {
namespace {

using namespace std::chrono_literals;

/// The former process with the same id may have died silently: until that is noticed, its id is taken.
constexpr Duration kTakenForGood = 10s;
/// The same for a member: longer than others bar a squatter from its place (swarm/members/membership.cc).
constexpr Duration kReplacedForGood = 6s;
/// Beyond this time without such an answer, the next one is the first: an address is dialled every 5 s.
constexpr Duration kTakenNoMore = 20s;

/// So often an address has to object: one answer may be garbled, or somebody else's who listens there.
constexpr int kBelieved = 2;

}  // namespace

bool PeerSearch::asks(const std::string& address) const {
  return std::ranges::find(options_.join, address) != options_.join.end();
}

void PeerSearch::nobody_answered(const std::string& why) {
  if (!objections_.empty()) return;  // a refusal says more
  last_answer_ = why + "; is a peer running there, and does a firewall let it be reached?";
}

void PeerSearch::was_rejected(Instant now, const std::string& address, const world::Refusal& refusal) {
  last_answer_ = address + " answers: " + refusal.words;
  // Otherwise this peer turned away the twin of another one.
  if (refusal.code == world::Refusal::Code::taken && refusal.peer == options_.self) note_taken(now, address);
}

void PeerSearch::note_taken(Instant now, const std::string& address) {
  std::erase_if(taken_, [&](const auto& answers) { return now - answers.second.last > kTakenNoMore; });
  taken_.try_emplace(address, Taken{.since = now, .last = now}).first->second.last = now;
}

// What one address said long ago must not count against the first answer of another one, which may just be
// turning the squatter away.
bool PeerSearch::is_replaced(Instant now, const std::vector<std::string>& others) const {
  const auto refuses = [&](const std::string& other) {
    const auto answers = taken_.find(other);
    return answers != taken_.end() && now - answers->second.last <= kTakenNoMore &&
           answers->second.last - answers->second.since >= kReplacedForGood;
  };
  return 2 * std::ranges::count_if(others, refuses) > std::ssize(others);
}

bool PeerSearch::is_final(Instant now, const std::string& address, const world::Refusal& refusal,
                          const Situation& situation) {
  if (situation.peer_state != wire::PeerState::fresh || !asks(address)) return false;
  const bool own_id = refusal.code == world::Refusal::Code::taken && refusal.peer == options_.self;
  if (refusal.code == world::Refusal::Code::taken && !own_id)
    return false;  // this peer turned away the twin of another one
  if (own_id && now - taken_.at(address).since < kTakenForGood) return false;
  const bool certain = refusal.code == world::Refusal::Code::self;  // by its own incarnation
  objections_[address] += certain ? kBelieved : 1;
  // Anybody may answer at one address; all of them together are believed.
  return (own_id || !situation.linked) &&
         std::ranges::all_of(options_.join,
                             [this](const std::string& asked) { return objections_[asked] >= kBelieved; });
}

Duration PeerSearch::limit() const {
  const bool has_begun = options_.returns || met_the_run_;
  return has_begun ? std::max<Duration>(kGiveUpJoining, options_.patience) : kGiveUpJoining;
}

std::optional<std::string> PeerSearch::gives_up(Instant now, const Situation& situation) {
  const bool fresh = situation.peer_state == wire::PeerState::fresh && !options_.founds && !situation.linked;
  const bool outside = situation.peer_state == wire::PeerState::syncing || fresh;
  met_the_run_ = met_the_run_ || situation.peer_state == wire::PeerState::syncing;
  if (!outside || situation.restoring || situation.offered) {
    hopeless_since_ = kNever;
    last_answer_.clear();
    objections_.clear();
    return std::nullopt;
  }
  hopeless_since_ = std::min(hopeless_since_, now);
  if (now - hopeless_since_ < limit()) return std::nullopt;
  gave_up_ = true;
  hopeless_since_ = kNever;
  std::string where = options_.join.empty() ? std::string() : " at " + options_.join.front();
  if (!options_.meets_in.empty()) where += ", nor by way of " + options_.meets_in + ",";
  const std::string what = "nobody who has the state of the run can be reached" + where + " for " +
                           std::to_string(limit() / 1s) + " s";
  return what + (last_answer_.empty() ? "; is a peer running there?" : ": " + last_answer_);
}

std::optional<Duration> PeerSearch::left(Instant now) const {
  if (hopeless_since_ == kNever) return std::nullopt;
  return limit() - (now - hopeless_since_);
}

bool PeerSearch::is_alone_for_good(Instant now, bool orphaned) {
  orphaned = orphaned && options_.founds;
  orphaned_since_ = orphaned ? std::min(orphaned_since_, now) : kNever;
  return orphaned && now - orphaned_since_ >= options_.patience;
}

}  // namespace tw::train
