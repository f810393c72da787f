// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "average/reduction/reference.h"
#include "sim/checkers/checker.h"

namespace tw::sim {

/// The residual of each peer under error feedback (RunOptions::error_feedback), computed from the records
/// that it reports as applied.
class Residuals {
 public:
  explicit Residuals(const Rules& rules) : rules_(rules) {}

  void on_event(PeerId peer, const world::Event& event);
  void on_strike(const Strike& strike);
  void on_commit(const Sighting& sighting);
  void on_applied(const Sighting& sighting);

  /// The sums of this record were not those that it says: what its contributors carry is not known any more.
  void lose(const wire::Record& record) {
    for (const wire::Contribution& c : record.contributors) hidden_.insert(c.peer);
  }

  /// False when a peer may have added a residual that is not observed: that of a twin under its id, or of
  /// gradients at parameters in which a bit had flipped. False, too, with more than kMostChoices choices.
  bool knows(const wire::Record& record) const;

  /// The right contribution of each contributor of this record, residual included: a choice for each residual
  /// that one of its processes may have had after the previous record, at most kMostChoices.
  std::vector<std::vector<std::vector<float>>> honest_sums(const wire::Record& record) const;

  /// The mean of such sums: the recorded one, if a choice gives it (then the others are ruled out), else that
  /// of the first. Call it before any on_commit of this record.
  std::vector<float> honest_mean(const wire::Record& record);

 private:
  static constexpr std::size_t kMostChoices = 1024;

  using Values = std::vector<float>;

  struct Carried {
    std::set<Values> choices;
    /// Its last record came by a state transfer, without residual: a contribution of this peer to the next
    /// round may be an earlier process's.
    bool fresh = true;
  };

  bool all_tried(const wire::Record& record) const;
  void rule_out_others(const wire::Record& record, const std::vector<std::vector<Values>>& right);

  Values nothing() const { return Values(rules_.fragments.length()); }

  Values after(const wire::Record& record, const std::vector<const wire::Contribution*>& own,
               const Values& before) const;
  const std::set<Values>& choices(const wire::Record& record, const wire::Contribution& contribution) const;

  Rules rules_;
  std::map<PeerId, Carried> carried_;
  std::set<PeerId> hidden_;                                      ///< their residuals are not observed
  std::map<std::pair<Digest, PeerId>, std::set<Values>> after_;  ///< by record
};

/// Mean of contributions with these sums, in the order of the record; those in these places arrive negated.
std::vector<float> mean_of(const wire::Record& record, const std::vector<std::vector<float>>& sums,
                           const Rules& rules, const std::set<std::size_t>& negated = {});

/// A contribution with this sum, in the form of the reference.
average::WeightedGradient weighted(const wire::Record& record, const wire::Contribution& contribution,
                                   std::span<const float> sum, const Rules& rules);

/// Sum of this contribution without any residual.
std::vector<float> honest_sum(const wire::Record& record, const wire::Contribution& contribution,
                              const Rules& rules);

}  // namespace tw::sim
