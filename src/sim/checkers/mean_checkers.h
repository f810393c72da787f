// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "sim/checkers/checker.h"
#include "sim/checkers/ledger.h"
#include "sim/checkers/residuals.h"

namespace tw::sim {

/// Peers whose sent values are wrong in a way that nobody who receives them can know: they are as finite and
/// as small as right ones.
class Liars {
 public:
  explicit Liars(const Rules& rules) : rules_(rules) {}

  void on_strike(const Strike& strike);

  /// Newest: the last round that is committed; what they sent before may be in the one after it.
  void on_calm(Round newest);

  bool empty() const { return kinds_.empty(); }

  /// The fault of this peer's part in this round; nothing when it is to be as it should.
  std::optional<FaultKind> of(PeerId peer, Round round) const;

 private:
  const Rules& rules_;
  std::map<PeerId, FaultKind> kinds_;
  Round last_ = ~Round{0};
};

/// I4: the mean is the reference mean over the recorded contributors, bit for bit (gradients of
/// SyntheticTrainer, and what error feedback adds to them). A peer that was struck by send_negated may have
/// sent each segment with either sign: then the mean is the reference for some choice of signs (up to
/// kMostChoices are tried, beyond it is not judged). A peer that sends huge values where no norm cap refuses
/// them, or segments that are named as of the next round and kept until then, makes the mean whatever it
/// likes: I1 and I8 still demand that it is the same for all.
class ExactMean final : public Checker {
 public:
  static constexpr std::uint64_t kMostChoices = 1 << 16;  ///< some 10 ms

  ExactMean(const Rules& rules, const Ledger& ledger)
      : Checker("I4"), rules_(rules), ledger_(ledger), liars_(rules_), residuals_(rules_) {}

  void on_commit(const Sighting& sighting) override;

  void on_applied(const Sighting& sighting) override { residuals_.on_applied(sighting); }

  void on_event(PeerId peer, const world::Event& event) override { residuals_.on_event(peer, event); }

  void on_strike(const Strike& strike) override {
    liars_.on_strike(strike);
    residuals_.on_strike(strike);
  }

  void on_calm(Instant at) override;

 private:
  void judge(const wire::Record& record);

  Rules rules_;
  const Ledger& ledger_;
  Liars liars_;
  Residuals residuals_;
  std::set<Digest> seen_;
};

/// I5: nothing enters a mean that is late, malformed, from an unknown peer, not finite, beyond the norm cap,
/// or sent twice. Contributors are members of the record before, each slot counts once; where a contributor
/// was struck so that its messages had to be refused, the mean is that of what it should have sent; and no
/// segment of the mean is longer than the cap.
class OnlySoundInput final : public Checker {
 public:
  OnlySoundInput(const Rules& rules, const Ledger& ledger)
      : Checker("I5"), rules_(rules), ledger_(ledger), residuals_(rules_) {}

  void on_commit(const Sighting& sighting) override;
  void on_applied(const Sighting& sighting) override;
  void on_strike(const Strike& strike) override;

  void on_event(PeerId peer, const world::Event& event) override { residuals_.on_event(peer, event); }

 private:
  void judge_contributors(const wire::Record& record);
  void judge_mean(const wire::Record& record);

  Rules rules_;
  const Ledger& ledger_;
  Residuals residuals_;
  std::set<Digest> seen_;
  std::map<PeerId, std::set<FaultKind>> refusable_;  ///< what struck it, for receivers to refuse
  std::set<PeerId> liars_;                           ///< struck by what no receiver can know
  std::map<PeerId, std::set<Digest>> heads_;         ///< records after which each had the state
};

}  // namespace tw::sim
