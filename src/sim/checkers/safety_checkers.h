// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/checkers/checker.h"
#include "sim/checkers/ledger.h"

namespace tw::sim {

/// I1: the same round leaves the same parameters on all peers. A peer with a fault of its memory may have
/// others until it takes the state of a peer without; so may those that took its state. I6 demands that none
/// of them contributes to a round that began with other parameters.
class SameParameters final : public Checker {
 public:
  explicit SameParameters(const Ledger& ledger) : Checker("I1"), ledger_(ledger) {}

  void on_applied(const Sighting& sighting) override;
  void on_strike(const Strike& strike) override;

 private:
  bool is_excused(const Sighting& sighting);

  struct First {
    PeerId peer;
    Digest record, parameters;
  };

  const Ledger& ledger_;
  std::map<Round, std::vector<First>> firsts_;  ///< one for each record of the round
  std::set<PeerId> damaged_;                    ///< may have other parameters
  std::set<Digest> damaged_parameters_;         ///< that they had
};

/// I2: a round is applied by all survivors or by none, and only once decided. A peer that left may have
/// missed a round which nobody that lives has applied: who knew that it was decided has died.
class AllOrNone final : public Checker {
 public:
  explicit AllOrNone(const Ledger& ledger) : Checker("I2"), ledger_(ledger) {}

  void on_commit(const Sighting& sighting) override;
  void on_applied(const Sighting& sighting) override;
  void on_end(std::span<const Survivor> survivors) override;

 private:
  const Ledger& ledger_;
  std::set<Digest> committed_;
  std::map<PeerId, Digest> heads_;
};

/// I3: the contributions of a round are disjoint, and their samples those of its batch: the remainder of the
/// previous round, then new ones, a target batch size in all. The remainder is at most half of a batch, none
/// after the last one, and the log of a leader names each microbatch that it leaves to the next round.
class ExactSamples final : public Checker {
 public:
  ExactSamples(const Rules& rules, const Ledger& ledger) : Checker("I3"), rules_(rules), ledger_(ledger) {}

  void on_event(PeerId peer, const world::Event& event) override;

  void on_twin_event(PeerId, const world::Event& event) override { note_left(event); }

  void on_commit(const Sighting& sighting) override;
  void on_end(std::span<const Survivor> survivors) override;

 private:
  void note_left(const world::Event& event);
  void judge_batch(const wire::Record& record);
  void judge_skipped(const Sighting& sighting);

  Rules rules_;
  const Ledger& ledger_;
  std::set<Digest> seen_;
  std::map<Round, RangeSet> left_;           ///< microbatches that a leader says it leaves to the next round
  std::set<std::uint64_t> skipped_;          ///< samples that peers said the run goes on without
  std::map<PeerId, std::string> committed_;  ///< the last record by its process
};

/// I6: a contributor to a round held the state with which the round began.
class KnownState final : public Checker {
 public:
  KnownState() : Checker("I6") {}

  void on_commit(const Sighting& sighting) override;
  void on_applied(const Sighting& sighting) override;
  void on_strike(const Strike& strike) override;

 private:
  std::set<PeerId> shared_;  ///< ids shared with a twin, whose state is not observed
  std::map<PeerId, std::set<Digest>> held_;
};

/// I8: one history, except branches marked as decided without a majority. Such a decision waits until the
/// previous record is as old as the patience (less the counted step of each clock jump). No peer drops a
/// history for one that ranks behind it: one that never had members beside its founder while the other had,
/// or with fewer samples decided by a majority, or with as many and fewer in all. Every record has the right
/// sums: the checker computes them from the records, their marks and their members.
class OneHistory final : public Checker {
 public:
  OneHistory(const Rules& rules, const Ledger& ledger) : Checker("I8"), rules_(rules), ledger_(ledger) {}

  void on_event(PeerId peer, const world::Event& event) override;
  void on_commit(const Sighting& sighting) override;
  void on_applied(const Sighting& sighting) override;

  void on_look(const Survivor& survivor) override { now_ = survivor.now; }

  void on_strike(const Strike& strike) override;

 private:
  /// Weight of the history that ends with a record.
  struct Weight {
    bool company = false;           ///< it had members beside its founder
    std::uint64_t by_majority = 0;  ///< samples
    std::uint64_t in_all = 0;
    std::vector<PeerId> awaited;  ///< before the first sum resumes

    auto rank() const { return std::tuple(company, by_majority, in_all); }
  };

  void judge_patience(const Sighting& sighting);
  const Weight& weigh(const Digest& digest);

  Rules rules_;
  const Ledger& ledger_;
  std::map<Digest, Weight> weights_;
  std::map<PeerId, Digest> heads_;  ///< of the processes
  Instant now_{};                   ///< time of the last look
  Duration jumps_{};                ///< time that peers count for them
  std::map<Round, std::set<Digest>> records_;
  std::map<Digest, Instant> decided_;  ///< first seen
};

}  // namespace tw::sim
