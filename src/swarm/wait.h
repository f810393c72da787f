// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace tw::swarm {

/// Reason why a peer waits, or its own work. Only text_of() has words for it: a new kind needs a line there.
struct Wait {
  enum class Kind : std::uint8_t {
    nothing,  ///< it does not wait

    // Waits for other peers, which `peers` names.
    majority,    ///< of the members of `round`; left: time until it goes on alone
    promises,    ///< to follow `ballot`
    takeover,    ///< to lead `round`
    gradients,   ///< of leased microbatches
    held_back,   ///< to catch up: rounds are faster than their bandwidth allows
    requests,    ///< for leases: microbatches are free
    readiness,   ///< to work or reduce in `round`
    successor,   ///< to go on with the run: all others leave
    newcomer,    ///< to go on with the run: `peers` leave, and nobody else is here
    segments,    ///< of the vector that is averaged; done, total
    votes,       ///< the mean to be complete there
    work,        ///< of the leader, or its call of the plan
    commit,      ///< of the leader
    members,     ///< to be reachable again; unanswered: the first of them
    link,        ///< to it: the others are linked with it, which leads; unanswered: its address
    beginning,   ///< of the first round
    founder,     ///< the same, but none of `peers` begins the run; unanswered: an address of the token
    offers,      ///< of the state, or of a missed mean
    state,       ///< transfer of the state; done, total: bytes
    mean,        ///< transfer of the mean of a missed round; done, total: bytes
    source,      ///< `peers` are linked; one of them has to have the state of the run
    custody,     ///< to take the sums of this peer, which leaves before the round ends
    last_round,  ///< their word that they have it
    relief,      ///< `peers` are slow: others reduce the rest of their shares

    // Waits for peers that are not known by name yet.
    company,  ///< done of total peers are here; the run begins when all are
    others,   ///< of a run that had begun; past; left: time until this peer goes on alone
    answer,   ///< unanswered: the address that is dialled; left: time until it gives up

    // Own work.
    initialising,  ///< the parameters from the seed
    computing,     ///< a microbatch; done: samples of `round` before it
    collecting,    ///< the sum of what it computed in `round`, from where the program has it
    away,          ///< the compute thread is the program's own; done: seconds since it went
    applying,      ///< the update of a round
    restoring,     ///< puts a state that arrived in place; total: bytes
    freezing,      ///< copies the state for a joiner or a checkpoint; total: bytes
    saving,        ///< a checkpoint; total: bytes
    loading,       ///< a checkpoint
    copying,       ///< the checkpoint of `round` (0: not known) to `place`; done, total: bytes
  };

  static constexpr Kind kLast = Kind::copying;

  /// Failed dials to one address.
  struct Unanswered {
    std::string address;
    std::string cause;  ///< of the last attempt
    std::uint64_t attempts = 0;

    bool operator==(const Unanswered&) const = default;
  };

  /// Traces of a run that began before this process, and its plan if no peer comes.
  struct Past {
    std::string found;
    std::optional<Round> checkpoint{};  ///< to resume from; none: it begins the run anew
    std::string trouble{};              ///< why it cannot go on by itself

    bool operator==(const Past&) const = default;
  };

  Kind kind = Kind::nothing;
  std::vector<PeerId> peers{};
  Round round = 0;
  Ballot ballot = 0;
  std::uint64_t done = 0;
  std::uint64_t total = 0;         ///< 0: not known
  double bytes_per_s = 0;          ///< 0: not known
  std::optional<Duration> left{};  ///< see the kinds
  std::optional<Unanswered> unanswered{};
  std::optional<Past> past{};
  std::string place{};

  bool operator==(const Wait&) const = default;
};

bool is_own_work(Wait::Kind kind);

/// True if it names a peer or an address, is own work, or lies before the beginning of the run.
bool is_named(const Wait& wait);

/// True when `now` is the same wait as `before`, further on.
bool goes_on(const Wait& before, const Wait& now);

/// "waiting for peers 2, 3: their votes", "saving a checkpoint: 1020.0 MB"; empty for nothing.
std::string text_of(const Wait& wait);

}  // namespace tw::swarm
