// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/checkers/checker.h"
#include "sim/checkers/ledger.h"

namespace tw::sim {

/// I1: the same round leaves the same parameters on all peers.
class SameParameters final : public Checker {
 public:
  explicit SameParameters(const Ledger& ledger) : Checker("I1"), ledger_(ledger) {}

  void on_applied(const Sighting& sighting) override;

 private:
  struct First {
    PeerId peer;
    Digest record, parameters;
  };

  const Ledger& ledger_;
  std::map<Round, std::vector<First>> firsts_;  ///< one for each record of the round
};

/// I2: a round is applied by all survivors or by none, and only once decided.
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

/// I3: the contributions of a round are disjoint, and their samples those of its batch: what the round before
/// left over, then new ones, a target batch size in all. At most half of a batch is left over, nothing of the
/// last one, and only where the log of a leader says that somebody was lost after the call.
class ExactSamples final : public Checker {
 public:
  ExactSamples(const Rules& rules, const Ledger& ledger) : Checker("I3"), rules_(rules), ledger_(ledger) {}

  void on_event(PeerId peer, const world::Event& event) override;
  void on_commit(const Sighting& sighting) override;
  void on_end(std::span<const Survivor> survivors) override;

 private:
  void judge_batch(const wire::Record& record);
  void judge_skipped(const Sighting& sighting);

  Rules rules_;
  const Ledger& ledger_;
  std::set<Digest> seen_;
  std::set<Round> short_;            ///< of which a leader says that it leaves something to the next one
  std::set<std::uint64_t> skipped_;  ///< samples that peers said the run goes on without
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
  std::set<PeerId> shared_;  ///< ids that a twin has, too: nobody sees what it holds
  std::map<PeerId, std::set<Digest>> held_;
};

/// I8: one history, but for branches that are marked as decided without a majority; and nobody decides so
/// before the record before is as old as the patience (less the step that each jump of a clock counts as).
/// Nobody gives up a history for one that goes behind it: one that never had members beside its founder where
/// the other had, or of which a majority decided fewer samples, or as many and fewer were in all. Every
/// record counts them rightly: both are found anew here from the records, their marks and their members.
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
    std::vector<PeerId> awaited;  ///< before the first sum goes on

    auto rank() const { return std::tuple(company, by_majority, in_all); }
  };

  void judge_patience(const Sighting& sighting);
  const Weight& weigh(const Digest& digest);

  Rules rules_;
  const Ledger& ledger_;
  std::map<Digest, Weight> weights_;
  std::map<PeerId, Digest> heads_;  ///< of the processes
  Instant now_{};                   ///< of the last look
  Duration jumps_{};                ///< what they count as in the waiting of a peer
  std::map<Round, std::set<Digest>> records_;
  std::map<Digest, Instant> decided_;  ///< first seen
};

}  // namespace tw::sim
