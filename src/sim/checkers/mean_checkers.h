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

/// Peers that send wrong values which no receiver can detect: they are finite and as small as right ones.
class Liars {
 public:
  explicit Liars(const Rules& rules) : rules_(rules) {}

  void on_strike(const Strike& strike);

  /// newest: the last committed round; values sent before may be in the round after it.
  void on_calm(Round newest);

  bool empty() const { return kinds_.empty(); }

  /// The fault of this peer's contribution in this round; nothing if it must be right.
  std::optional<FaultKind> of(PeerId peer, Round round) const;

 private:
  const Rules& rules_;
  std::map<PeerId, FaultKind> kinds_;
  Round last_ = ~Round{0};
};

/// I4: the mean is the reference mean over the recorded contributors, bit for bit (gradients of
/// SyntheticTrainer, and what error feedback adds to them). A peer that was struck by send_negated may have
/// sent each segment with either sign: then the mean is the reference for some choice of signs (up to
/// kMostChoices are tried; with more the mean is not checked). A peer may send huge values without a norm
/// cap, or segments for the next round that are kept until then; or compute with parameters in which a bit
/// has flipped. So it controls the mean; I1 and I8 still demand that the mean is the same for all.
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
  void judge(const Digest& digest, const wire::Record& record);
  void judge_parent(const wire::Record& record);
  void unlike(const wire::Record& record);
  std::optional<std::vector<std::size_t>> negated_in(const wire::Record& record) const;
  bool is_explained(const wire::Record& record);

  Rules rules_;
  const Ledger& ledger_;
  Liars liars_;
  Residuals residuals_;
  std::set<Digest> seen_;
  std::map<Digest, wire::Record> late_;  ///< of contributions that were leased after the call
};

/// I5: nothing enters a mean that is late, malformed, from an unknown peer, not finite, beyond the norm cap,
/// or sent twice. Contributors are members of the record before, each slot counts once; where messages of a
/// contributor had to be refused because of a fault, the mean is that of its right values; and no segment of
/// the mean is longer than the cap.
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
  std::map<PeerId, std::set<FaultKind>> refusable_;  ///< faults of each peer that receivers must refuse
  std::set<PeerId> liars_;                           ///< peers with a fault that no receiver can detect
  std::map<PeerId, std::set<Digest>> heads_;         ///< records whose state each peer had
};

}  // namespace tw::sim
