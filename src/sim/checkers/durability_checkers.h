// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/checkers/checker.h"
#include "sim/checkers/ledger.h"
#include "sim/faults/fault_window.h"
#include "wire/rank.h"

namespace tw::sim {

/// I7: whatever ended a process, the checkpoint that loads from its disk does not come after the last one
/// that its event log called durable, by the rank of histories, and holds exactly the state after its record.
/// A disk on which a fault destroyed a durable one may load an older one, or nothing with an error; never
/// torn content. The store holds a copy that is at least the last one in any event log. A run
/// that resumes takes the newest history that a sound checkpoint of the peer holds; after a loss of all peers
/// at once, the newest one on the disks of all of them, if nothing else disturbs them.
class CheckpointsLast final : public Checker {
 public:
  explicit CheckpointsLast(const Rules& rules) : Checker("I7"), rules_(rules) {}

  void on_applied(const Sighting& sighting) override;
  void on_event(PeerId peer, const world::Event& event) override;
  void on_strike(const Strike& strike) override;

  void on_calm(Instant at) override { window_.on_calm(at); }

  void on_disk(PeerId peer, world::Files& files) override;
  void on_store(world::Files& store) override;
  void on_look(const Survivor& survivor) override;
  void on_end(std::span<const Survivor> survivors) override;

 private:
  /// Content of a disk; checked once the faults of that instant are known.
  struct Finding {
    PeerId peer;
    wire::Rank durable{};
    wire::Rank loaded{};  ///< no record: nothing
    Digest origin{};      ///< of its history
    std::string error;
  };

  /// The newest checkpoint in a folder, whose state was held. where: for messages.
  Finding newest_in(world::Files& files, const std::string& folder, const std::string& where);
  void judge();
  static bool is_lost(const wire::Rank& durable, const Finding& found);
  void find_best(PeerId peer, world::Files& files);
  void judge_resumed(const Sighting& sighting);
  void judge_resumed_by_all(const Sighting& sighting, const wire::Rank& taken);

  /// The sound checkpoints of the run on a disk.
  struct Disk {
    std::map<Digest, wire::Rank> sound;
    std::set<Digest> origins;
  };

  Rules rules_;
  std::map<std::string, wire::Rank> ranks_;  ///< by the digest of the record
  std::map<PeerId, wire::Rank> durable_;
  std::map<PeerId, wire::Rank> best_;  ///< of a disk when its process ended
  std::set<PeerId> resumes_;           ///< the state follows
  std::map<PeerId, Disk> disks_;       ///< when their processes ended
  std::set<PeerId> lost_together_;     ///< by the last fault, and nobody has resumed since
  FaultWindow window_;                 ///< of faults that do not just end a process
  wire::Rank copied_;
  std::set<PeerId> damaged_;
  std::map<Digest, std::set<Digest>> states_;  ///< parameters after each record
  std::vector<Finding> findings_;
};

/// I9: a preemption costs little. With a notice no microbatch of the victim is leased again, and the victim
/// leaves by itself before the notice ends, unless another fault strikes meanwhile. Without a notice, only
/// microbatches of the victim in undecided rounds are leased again; no other peer loses work. (I3 demands
/// that lost samples are computed after all.)
class CheapPreemption final : public Checker {
 public:
  CheapPreemption(const Rules& rules, const Ledger& ledger) : Checker("I9"), rules_(rules), ledger_(ledger) {}

  void on_event(PeerId writer, const world::Event& event) override;

  void on_twin_event(PeerId writer, const world::Event& event) override { note_missed(writer, event); }

  void on_strike(const Strike& strike) override;
  void on_calm(Instant at) override;
  void on_look(const Survivor& survivor) override;

 private:
  struct Notice {
    PeerId peer;
    Instant ends{};
    bool disturbed = false;  ///< something else struck meanwhile
  };

  bool disturbed(Instant at) const;
  void mark_struck_round();
  void note_missed(PeerId writer, const world::Event& event);

  Rules rules_;
  const Ledger& ledger_;
  Round struck_round_ = 0;  ///< last round in which a fault other than the end of a process struck
  Instant now_{};           ///< time of the last look or strike: the clock of an event's writer may be wrong
  FaultWindow window_;      ///< of all faults but the end of one process
  std::set<PeerId> gone_;   ///< struck themselves, or at their end
  std::set<std::pair<PeerId, Round>> missed_;  ///< what was decided without them
  std::vector<Notice> notices_;
};

/// I11: the event log of a peer has its decisions and its state: its commits, applications and restores are
/// those that were observed, in order, with their digests, and the last one is the head of the peer's
/// history. (The record of round 0 is in no log: it is not decided.)
class LogReplays final : public Checker {
 public:
  LogReplays() : Checker("I11") {}

  void on_event(PeerId peer, const world::Event& event) override;
  void on_commit(const Sighting& sighting) override;
  void on_applied(const Sighting& sighting) override;
  void on_end(std::span<const Survivor> survivors) override;

 private:
  struct Bandwidth {
    world::Phase phase{};
    Round round = 0;
    std::string digest;

    bool operator==(const Bandwidth&) const = default;
  };

  struct Log {
    std::deque<Bandwidth> unseen;  ///< written, not observed yet
    Round head = 0;
    bool catching_up = false;  ///< it fetches state and means, and still shows the former head
  };

  void match(PeerId peer, const Bandwidth& seen);

  std::map<PeerId, Log> logs_;
};

/// I12: the memory that a peer holds for others stays within its bound, and so do the means that wait to be
/// applied.
class BoundedMemory final : public Checker {
 public:
  BoundedMemory() : Checker("I12") {}

  void on_look(const Survivor& survivor) override;

 private:
  std::set<PeerId> told_;
};

}  // namespace tw::sim
