// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/rarely.h"
#include "swarm/action.h"
#include "swarm/ballots/acceptor.h"
#include "swarm/ballots/history.h"
#include "swarm/ballots/last_round.h"
#include "swarm/leases/lease_book.h"
#include "swarm/leases/work.h"
#include "swarm/members/farewell.h"
#include "swarm/members/membership.h"
#include "swarm/members/part.h"
#include "swarm/shares/division.h"
#include "wire/outbox.h"
#include "world/events.h"

namespace tw::swarm {

/// Sizes of what a round averages.
struct Averaged {
  std::uint64_t segments = 0;
  WireBytes bytes{};
  std::uint64_t sum_bytes = 0;  ///< of a sum that a leaving peer hands over
};

/// Options of a Swarm.
struct SwarmOptions {
  wire::Member self;
  Digest run;
  bool anchor = false;   ///< its machine stays: it comes before others in the records that it makes
  bool founder = false;  ///< begins the history when wait_for peers are there
  /// Each peer begins with other parameters, and all but the founder take the founder's state.
  bool founders_parameters = false;
  bool returns = false;  ///< the run had begun before: a founder begins nothing before go_on_alone()
  std::uint32_t wait_for = 1;
  std::vector<std::string> bootstrap;  ///< addresses to dial while no peer is linked there
  LeaseBook::Options lease;
  std::vector<Averaged> averaged{{}};  ///< by rounds, which take turns
  std::uint64_t grain = 1;             ///< microbatches that this peer computes at once, initially
  Round rounds = 0;
  Duration patience{};
  SiteUse sites = SiteUse::automatic;
  Rarely rarely{};
};

inline const Averaged& averaged_in(const SwarmOptions& options, Round round) {
  return options.averaged[round % options.averaged.size()];
}

/// Messages, actions and events of a swarm, until its owner takes them.
class Outputs {
 public:
  void send(PeerId to, wire::Message message) { messages_.push_back({to, std::move(message)}); }

  /// Not inlined: where it is, GCC 12 takes members of the other alternatives for used and uninitialised.
  [[gnu::noinline]] void ask_owner(Action action);

  void report(world::Event event) { events_.push_back(std::move(event)); }

  wire::Outbox take_messages() { return std::exchange(messages_, {}); }

  bool has_actions() const { return !actions_.empty(); }

  std::vector<Action> take_actions() { return std::exchange(actions_, {}); }

  std::vector<world::Event> take_events() { return std::exchange(events_, {}); }

  /// Events of rounds up to this one, which led to its record.
  std::vector<world::Event> take_events_until(Round round);

 private:
  wire::Outbox messages_;
  std::vector<Action> actions_;
  std::vector<world::Event> events_;
};

/// What the objects of a Swarm share: where this peer stands in the run and in the round under way, and what
/// goes out. Swarm owns it, and it outlives the others.
struct SwarmCore {
  SwarmCore(SwarmOptions of_swarm, Instant begins);
  SwarmCore(const SwarmCore&) = delete;
  SwarmCore& operator=(const SwarmCore&) = delete;

  /// Time in which this process was stopped counts as no peer's delay.
  void wake(Instant at);

  const std::optional<wire::Record>& head() const { return history.head(); }

  /// Members of the head; none before there is one.
  const std::vector<wire::Member>& members() const;

  bool takes_part() const { return part.takes_part() && head(); }

  /// With overlap: its part of the round under way is done, and it computes for the next one.
  bool has_moved_on() const {
    return came_moved_on || work.has_moved_on() || (next_work && !next_work->is_untouched());
  }

  /// The batch of the round under way.
  TargetBatch batch() const { return head() ? options.lease.after(*head()) : options.lease; }

  /// The work of this round; null: there is none.
  Work* work_of(Round round);

  /// The round under way: the one after the head.
  bool of_this_round(Round round) const { return history.is_next(round); }

  /// The member that the round under way follows: the owner of the promised ballot, or the first one that is
  /// here.
  std::optional<PeerId> leader() const;

  /// No process that is here has been in the run for longer than this one. Rounds that leave one out while it
  /// is busy do not count against it.
  bool is_eldest() const;

  /// False for a process that a later one replaced, and for one just linked in a member's place.
  bool may_link(const wire::Member& process) const { return membership.may_link(now, process, members()); }

  /// True at the head of the history for a non-member, if none of the head's members is here.
  bool is_orphaned() const;

  /// After the last record: members that have not confirmed it, and peers that fetch the state.
  std::vector<PeerId> not_at_the_end() const;

  /// The history that goes before all others that heartbeats or a late commit told of, if any.
  wire::Rank best_told() const { return membership.best_told(now); }

  /// Anchors among the linked peers and this one.
  std::set<PeerId> anchors() const;

  /// To a linked peer, or to this one: then it is due before the call that sends it ends.
  void send(PeerId to, wire::Message message);
  void broadcast(const wire::Message& message);

  SwarmOptions options;
  Instant now;
  Instant next_tick;
  Part part;
  Farewell farewell;
  History history;
  Membership membership;
  LastRound last_round;
  Work work{0};
  /// With overlap: of the round after the one under way, from the call of the latter on
  /// (wire::Record::ahead).
  std::optional<Work> next_work;
  std::optional<wire::RunEnd> run_end;  ///< the first wish that this peer had, or heard of a member
  bool came_moved_on = false;           ///< to the round under way: Swarm::begin
  Acceptor acceptor;
  std::deque<wire::Message> own_messages;
  Outputs outputs;
};

}  // namespace tw::swarm
