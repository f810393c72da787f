// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>

#include "sim/checkers/checker.h"
#include "sim/checkers/ledger.h"
#include "sim/faults/fault_window.h"

namespace tw::sim {

/// For bounds on time: since when the assumptions of the bound hold.
class Conditions {
 public:
  Conditions(const Rules& rules, const Ledger& ledger) : rules_(rules), ledger_(ledger) {}

  void on_strike(const Strike& strike) { window_.on_strike(strike); }

  void on_calm(Instant at) { window_.on_calm(at); }

  void on_look(const Survivor& survivor) { census_.on_look(survivor); }

  bool lives(PeerId peer, Instant now) const { return census_.lives(peer, now); }

  /// `from`, or the end of the last fault, or the last loss of a peer; kNever while a fault is active,
  /// without a majority, before the beginning or after the end of the run.
  Instant undisturbed_since(Instant from, Instant now) const;

 private:
  const Rules& rules_;
  const Ledger& ledger_;
  FaultWindow window_;
  Census census_;
};

/// L1: once faults are over and a majority is connected, a round commits within three rounds' time plus the
/// time to detect losses and to link again; and the run completes (the world ends after the allowed time). A
/// peer that was no member any more at the end of the run may be left behind: the others wait a while only
/// for one that fetches the state (train/session/departure.h).
class GoesOn final : public Checker {
 public:
  GoesOn(const Rules& rules, const Ledger& ledger)
      : Checker("L1"), rules_(rules), ledger_(ledger), conditions_(rules_, ledger) {}

  void on_strike(const Strike& strike) override;
  void on_calm(Instant at) override;
  void on_look(const Survivor& survivor) override;
  void on_end(std::span<const Survivor> survivors) override;

  /// Counted from calm, or from the previous commit.
  static Duration limit(const Rules& rules);

 private:
  Rules rules_;
  const Ledger& ledger_;
  Conditions conditions_;
  Instant since_ = kNever;                ///< calm, then the newest record
  const wire::Record* newest_ = nullptr;  ///< then
  bool told_ = false;
  std::set<PeerId> shared_;  ///< ids that a twin has, too: one of the two stays outside
};

/// L2: a peer that joins a run, or rejoins it, is a member within the transfer time of the state and two
/// rounds, if no fault strikes meanwhile. (Its contribution depends on its speed: a round may end before it
/// has computed anything.)
class JoinersGetIn final : public Checker {
 public:
  JoinersGetIn(const Rules& rules, const Ledger& ledger)
      : Checker("L2"), rules_(rules), ledger_(ledger), conditions_(rules_, ledger) {}

  void on_strike(const Strike& strike) override { conditions_.on_strike(strike); }

  void on_calm(Instant at) override { conditions_.on_calm(at); }

  void on_event(PeerId peer, const world::Event& event) override;
  void on_commit(const Sighting& sighting) override;
  void on_look(const Survivor& survivor) override;

  static Duration limit(const Rules& rules);

 private:
  Rules rules_;
  const Ledger& ledger_;
  Conditions conditions_;
  std::map<PeerId, Instant> outside_;  ///< since when
  Instant now_{};                      ///< time of the last look: a peer's own clock may be wrong
};

/// L4: after the death of the leader the next round commits without intervention, within the detection limit
/// and three rounds' time; where two processes have one id, which may have half of its links each, within the
/// time that L1 allows.
class LeaderIsReplaced final : public Checker {
 public:
  LeaderIsReplaced(const Rules& rules, const Ledger& ledger)
      : Checker("L4"), rules_(rules), ledger_(ledger), conditions_(rules_, ledger) {}

  void on_strike(const Strike& strike) override;

  void on_calm(Instant at) override { conditions_.on_calm(at); }

  void on_event(PeerId peer, const world::Event& event) override;
  void on_look(const Survivor& survivor) override;

  static Duration limit(const Rules& rules);

 private:
  struct Vacancy {
    PeerId leader;
    Instant since{};
    const wire::Record* newest = nullptr;  ///< then
  };

  Rules rules_;
  const Ledger& ledger_;
  Conditions conditions_;
  PeerId leader_;          ///< the last that took the lead
  bool has_twin_ = false;  ///< some id has two processes
  std::optional<Vacancy> vacancy_;
};

/// No session gives up, unless it came too late (the run is over, and it is no member) or is one of two
/// processes with one id, of which the other one is a member, or was the last that was one.
class NobodyFails final : public Checker {
 public:
  explicit NobodyFails(const Ledger& ledger) : Checker("failure"), ledger_(ledger) {}

  void on_strike(const Strike& strike) override;
  void on_look(const Survivor& survivor) override;

 private:
  bool has_lost_its_id(const Survivor& survivor) const;

  std::set<PeerId> shared_;  ///< ids that a twin has, too
  const Ledger& ledger_;
};

/// L3: a peer that waits for more than 5 s names the peer that it waits for, or its own work. A wait for
/// others always names one of them, however short it is.
class WaitsAreNamed final : public Checker {
 public:
  WaitsAreNamed() : Checker("L3") {}

  void on_look(const Survivor& survivor) override;

 private:
  std::set<PeerId> told_;
  std::map<PeerId, Instant> for_nobody_since_;  ///< its wait names no other peer
};

/// L5: a peer that runs and can be reached is not taken for silent, whatever befell the peer that judges it:
/// one that was stopped blames nobody for it when it goes on. Judged as long as no fault has struck that can
/// make a peer silent to others, except stops: nobody is blamed for a peer that was stopped once. A silence
/// of less than 2 s is not judged: in an overdue round it counts, and a stop of less than Detector::kStopped
/// passes for it.
class NobodyIsBlamed final : public Checker {
 public:
  NobodyIsBlamed() : Checker("L5") {}

  void on_strike(const Strike& strike) override;
  void on_event(PeerId peer, const world::Event& event) override;

 private:
  bool disturbed_ = false;
  std::set<PeerId> stopped_;
};

}  // namespace tw::sim
