// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/board/board.h"
#include "monitor/fold/seen.h"
#include "swarm/shares/bound.h"
#include "wire/bandwidth.h"

namespace tw::monitor {

/// Pairs, in either direction one link, whose rate decides how long averaging with this split takes: without
/// any other it would take as long. The slowest first, so many at most.
inline constexpr std::size_t kMostBindingPairs = 8;
std::vector<std::pair<PeerId, PeerId>> binding_pairs(const std::vector<swarm::Participant>& all,
                                                     const swarm::Split& split);

/// Time that a peer, a link or a loader costs the others: an account of each round, made when the next ones
/// were decided.
///
/// While peers compute, leases follow their speed, so nobody is seen to wait for a slow one: it costs what
/// the round would be shorter with its missing speed. The last microbatch of the slowest peer, and what holds
/// up averaging, costs in full; bandwidth costs the difference of the bounds (swarm/shares/bound.h) with its
/// own and with the median of the others. Whatever all peers have in common is no delay: it has no culprit.
/// With overlap, the part of averaging that is hidden costs nothing.
class Delays {
 public:
  void take(const Seen& seen);

  /// Rounds after this one are repeated: those that are not closed do not count. 0: none counts.
  void rewind(Round to);

  /// The costliest of the last rounds first, then those that cost most of all. usd_per_h: of all machines.
  std::vector<Delay> board(std::optional<double> usd_per_h) const;

  static constexpr std::size_t kRecentRounds = 10;
  static constexpr double kNamedShare = 0.05;  ///< of the time of the last rounds
  static constexpr std::size_t kMostSuspects = 256;

 private:
  struct Key {
    Delay::Cause cause{};
    PeerId peer;
    std::optional<PeerId> to{};

    auto operator<=>(const Key&) const = default;
  };

  using Costs = std::map<Key, double>;

  /// Seconds that a counter of a peer's process grew by.
  struct Grown {
    double computing = 0, averaging = 0;

    double sum() const { return computing + averaging; }
  };

  /// A counter that is read now and then: what it grew by belongs to the phases since the reading before, by
  /// their time.
  struct Counter {
    std::optional<double> last;  ///< reading
    double seen_s = 0;           ///< end of the last phase
    Grown passed;                ///< seconds since the last reading
    Grown grown;                 ///< in this round

    void pass(double Grown::*phase, double end_s, std::optional<double> reading);
  };

  struct Peer {
    std::string hardware;
    Counter queued, disk;
    Round called = 0;
    wire::Bandwidth bandwidth;  ///< Mbit/s, not bytes
  };

  /// What one peer did in one round.
  struct Part {
    PeerId peer;
    double at_s = 0;
    double samples = 0, work_s = 0, data_s = 0;
    double calc_s = 0, comm_s = 0;  ///< comm_s: without what is hidden
    Grown queued, disk;
  };

  struct Account {
    std::vector<Part> parts;
    double committed_s = 0;  ///< by its first peer
    double bound_s = 0;      ///< of its averaging, as its leader computed it
  };

  struct Suspect {
    std::deque<double> recent;  ///< seconds of the last rounds
    double seconds = 0;         ///< of all
    std::optional<double> since_s;

    double recent_seconds() const;
  };

  void take_call(const Seen& seen, const event::Call& call);
  void take_commit(const Seen& seen, const event::Commit& commit);
  void close(const Account& account);
  void add_computing(const Account& account, Costs& costs) const;
  double add_links(const Account& account, Costs& costs) const;
  void add_averaging(const Account& account, double comm_s, Costs& costs) const;
  void charge(const Costs& costs, double begun_s);
  std::map<Delay::Cause, double> excess(const Account& account, const Part& part) const;

  std::map<PeerId, Peer> peers_;
  std::map<Round, Account> open_;
  std::optional<double> closed_s_;  ///< when the last closed round was decided
  std::deque<double> took_;         ///< by the last rounds
  std::map<Key, Suspect> suspects_;
};

}  // namespace tw::monitor
