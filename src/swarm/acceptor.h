// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "wire/messages.h"

namespace tw {

/// A member's side of the decision of one round: which ballot it follows, which plan it has, what it voted
/// for.
class Acceptor {
 public:
  Ballot promised() const { return promised_; }

  const std::optional<Plan>& plan() const { return plan_; }

  const std::optional<Accepted>& accepted() const { return accepted_; }

  /// Prepare: no lower ballot is followed from now on.
  void promise(Ballot ballot) { promised_ = std::max(promised_, ballot); }

  /// A plan: true when it replaces the present one.
  bool take(const Plan& plan) {
    if (plan.ballot < promised_) return false;
    if (accepted_ && number_of(plan) < number_of(accepted_->plan)) return false;
    if (plan_ && !again_ && plan_->ballot == plan.ballot && plan_->version >= plan.version) return false;
    promised_ = plan.ballot;
    plan_ = plan;
    again_ = false;
    return true;
  }

  /// What was averaged of the present plan is lost: take() takes it once more. What was promised and voted
  /// for stands.
  void start_over() { again_ = true; }

  /// The present plan is being averaged here.
  bool averages() const { return plan_ && !again_; }

  /// The whole mean of the present plan is here. Nothing when a higher ballot was promised since.
  std::optional<Vote> vote(const Digest& mean) {
    if (!averages() || plan_->ballot < promised_) return std::nullopt;
    accepted_ = Accepted{*plan_, mean};
    return Vote{plan_->draft.round, plan_->ballot, plan_->version, mean};
  }

  /// Whether the present plan becomes just this record when `mean` is its mean.
  bool becomes(const Record& record, const Digest& mean) const {
    if (!averages()) return false;
    Record decided = plan_->draft;
    decided.mean = mean;
    return decided == record;
  }

 private:
  static std::pair<Ballot, std::uint32_t> number_of(const Plan& plan) { return {plan.ballot, plan.version}; }

  Ballot promised_ = 0;
  std::optional<Plan> plan_;
  bool again_ = false;  // plan_ is known of, but not averaged here
  std::optional<Accepted> accepted_;
};

}  // namespace tw
