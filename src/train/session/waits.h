// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/time.h"
#include "swarm/wait.h"
#include "world/events.h"

namespace tw::train {

/// The jobs that one executor was given, in the order of submission: the first one is under way.
class OwnWork {
 public:
  /// what: its kind, and facts known before it begins.
  void submitted(Instant now, swarm::Wait what);
  /// The first job finished after it ran for `took`.
  void finished(Instant now, Duration took);
  /// A job was dropped, or did nothing; 0: the first one.
  void dropped(Instant now, std::size_t number);

  /// The job under way; empty if there is none.
  swarm::Wait current() const;

  /// When the job under way, the first one, began.
  Instant since() const { return since_; }

  /// Expected time of jobs of this kind, if it is longer than what is known, until the next one has ended.
  void expect(swarm::Wait::Kind kind, Duration usual) {
    if (usual > this->usual(kind)) usual_[kind] = {usual, 1};
  }

  /// How long jobs of this kind take, smoothed from the second one on; 0 before one has ended.
  Duration usual(swarm::Wait::Kind kind) const;

 private:
  struct Usual {
    Duration took{};
    std::uint64_t seen = 0;  ///< jobs
  };

  std::deque<swarm::Wait> jobs_;
  Instant since_{};
  std::map<swarm::Wait::Kind, Usual> usual_;
};

/// The work of a session, addresses that do not answer, and the times to report its wait. Loop thread only.
class Waits {
 public:
  OwnWork& compute() { return compute_; }

  OwnWork& disk() { return disk_; }

  /// Copies of checkpoints to another folder.
  OwnWork& copies() { return copies_; }

  const OwnWork& compute() const { return compute_; }

  const OwnWork& disk() const { return disk_; }

  const OwnWork& copies() const { return copies_; }

  /// A dial failed; reported while dials go on and no peer has answered there.
  void on_refused(Instant now, const std::string& address, const std::string& cause);

  /// A peer answered there: a link was opened, or there was one already.
  void on_answer(const std::string& address) { unanswered_.erase(address); }

  std::optional<swarm::Wait::Unanswered> unanswered(Instant now, const std::string& address) const;

  /// With more addresses, the one that was dialled longest ago is forgotten.
  static constexpr std::size_t kMostAddresses = 64;
  /// Since the last dial. A wanted peer is dialled again after 5 s at most (swarm/members/roster.cc); a dial
  /// takes 10 s at most.
  static constexpr Duration kDialledNoMore = std::chrono::minutes(1);

  /// To be called with every tick. An event once `wait` has lasted for 4 s, and again each time it is half as
  /// long again. A microbatch is reported only when it takes three times as long as usual.
  std::optional<world::Event> watch(Instant now, Round round, const swarm::Wait& wait);

 private:
  struct Dials {
    swarm::Wait::Unanswered known;
    Instant last{};
  };

  Duration told_first_after() const;

  OwnWork compute_, disk_, copies_;
  std::map<std::string, Dials> unanswered_;  ///< by address
  swarm::Wait last_;
  Round round_ = 0;
  Instant since_{};
  Duration told_after_{};  ///< its duration at the last report; 0: not reported yet
};

}  // namespace tw::train
