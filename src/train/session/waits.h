// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/time.h"
#include "swarm/wait.h"
#include "train/session/work_meter.h"
#include "world/events.h"

namespace tw::train {

/// The jobs that one executor was given, in the order of submission: the first one is under way.
class OwnWork {
 public:
  /// what: its kind, and what is known of it before it begins.
  void submitted(Instant now, swarm::Wait what);
  /// The first one, after it ran for so long.
  void finished(Instant now, Duration took);
  /// One of which nothing was done; 0: the first one.
  void dropped(Instant now, std::size_t number);

  /// The job under way, with what its meter says; nothing when there is none.
  swarm::Wait current() const;

  /// The job under way is the first one: since when.
  Instant since() const { return since_; }

  /// Jobs of this kind may take so long, as far as none has ended yet.
  void expect(swarm::Wait::Kind kind, Duration usual) { usual_.try_emplace(kind, Usual{usual, 1}); }

  /// How long jobs of this kind take, smoothed from the second one on; 0 before one has ended.
  Duration usual(swarm::Wait::Kind kind) const;

  /// How far the job under way is, where it tells.
  const std::shared_ptr<WorkMeter>& meter() const { return meter_; }  // owners: this and the job that runs

 private:
  struct Usual {
    Duration took{};
    std::uint64_t seen = 0;  ///< jobs
  };

  std::deque<swarm::Wait> jobs_;
  Instant since_{};
  std::map<swarm::Wait::Kind, Usual> usual_;
  std::shared_ptr<WorkMeter> meter_ = std::make_shared<WorkMeter>();  // owners: this and the job that runs
};

/// What a session works on, which addresses do not answer, and when its wait is to be told. Loop thread only.
class Waits {
 public:
  OwnWork& compute() { return compute_; }

  OwnWork& disk() { return disk_; }

  const OwnWork& compute() const { return compute_; }

  const OwnWork& disk() const { return disk_; }

  /// A dial came to nothing; told as long as nobody has answered there and dials go on.
  void on_refused(Instant now, const std::string& address, const std::string& cause);

  /// Somebody answered there: a link was opened, or there was one already.
  void on_answer(const std::string& address) { unanswered_.erase(address); }

  std::optional<swarm::Wait::Unanswered> unanswered(Instant now, const std::string& address) const;

  /// Beyond it the one that was dialled longest ago is forgotten.
  static constexpr std::size_t kMostAddresses = 64;
  /// Since the last dial. A wanted peer is dialled again after 5 s at most (swarm/members/roster.cc); a dial
  /// takes 10 s at most.
  static constexpr Duration kDialledNoMore = std::chrono::minutes(1);

  /// To be called with every tick. An event once `wait` has lasted for 4 s, and again whenever it has lasted
  /// for half as long again. A wait for data is told at once. A microbatch is told of only when it takes
  /// three times as long as usual.
  std::optional<world::Event> watch(Instant now, Round round, const swarm::Wait& wait);

 private:
  struct Dials {
    swarm::Wait::Unanswered known;
    Instant last{};
  };

  Duration told_first_after() const;

  OwnWork compute_, disk_;
  std::map<std::string, Dials> unanswered_;  ///< by address
  swarm::Wait last_;
  Round round_ = 0;
  Instant since_{};
  Duration told_after_{};  ///< how long it had lasted when it was told last; 0: not yet
};

}  // namespace tw::train
