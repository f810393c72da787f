// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "average/reduction/reference.h"
#include "sim/checkers/checker.h"

namespace tw::sim {

/// What each peer carries from round to round under error feedback (RunOptions::error_feedback), computed
/// from the records that it says it applied.
class Residuals {
 public:
  explicit Residuals(const Rules& rules) : rules_(rules) {}

  void on_event(PeerId peer, const world::Event& event);
  void on_strike(const Strike& strike);
  void on_commit(const Sighting& sighting);
  void on_applied(const Sighting& sighting);

  /// False when somebody whose id a twin shares may have added its residual: nobody sees what a twin holds.
  /// Nor where there are more than kMostChoices.
  bool knows(const wire::Record& record) const;

  /// What each contributor of this record should have sent, its residual included: a choice for each residual
  /// that one of its processes may have had after the record before, kMostChoices of them at most.
  std::vector<std::vector<std::vector<float>>> honest_sums(const wire::Record& record) const;

  /// The mean of such sums: the recorded one, if some choice gives it (then the others are ruled out), else
  /// that of the first. To be called before anybody's on_commit of this record.
  std::vector<float> honest_mean(const wire::Record& record);

 private:
  static constexpr std::size_t kMostChoices = 1024;

  using Values = std::vector<float>;

  struct Carried {
    std::set<Values> choices;
    /// Its last record came with the state of others, carrying nothing: a contribution to the round after
    /// that is known to be of its peer may be an earlier process's.
    bool fresh = true;
  };

  bool all_tried(const wire::Record& record) const;
  void rule_out_others(const wire::Record& record, const std::vector<std::vector<Values>>& right);

  Values nothing() const { return Values(rules_.geometry.length); }

  Values after(const wire::Record& record, const std::vector<const wire::Contribution*>& own,
               const Values& before) const;
  const std::set<Values>& choices(const wire::Record& record, const wire::Contribution& contribution) const;

  Rules rules_;
  std::map<PeerId, Carried> carried_;
  std::set<PeerId> shared_;                                      ///< ids that a twin has, too
  std::map<std::pair<Digest, PeerId>, std::set<Values>> after_;  ///< by record
};

/// Mean of contributions with these sums, in the order of the record; those in these places arrive negated.
std::vector<float> mean_of(const wire::Record& record, const std::vector<std::vector<float>>& sums,
                           const Rules& rules, const std::set<std::size_t>& negated = {});

/// A contribution with this sum, as the reference wants it.
average::WeightedGradient weighted(const wire::Record& record, const wire::Contribution& contribution,
                                   std::span<const float> sum, const Rules& rules);

/// Sum of this contribution without any residual.
std::vector<float> honest_sum(const wire::Record& record, const wire::Contribution& contribution,
                              const Rules& rules);

}  // namespace tw::sim
