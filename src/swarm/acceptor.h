// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

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
    if (plan_ && plan_->ballot == plan.ballot && plan_->version >= plan.version) return false;
    promised_ = plan.ballot;
    plan_ = plan;
    return true;
  }

  /// The whole mean of the present plan is here. Nothing when a higher ballot was promised since.
  std::optional<Vote> vote(const Digest& mean) {
    if (!plan_ || plan_->ballot < promised_) return std::nullopt;
    accepted_ = Accepted{*plan_, mean};
    return Vote{plan_->draft.round, plan_->ballot, plan_->version, mean};
  }

 private:
  Ballot promised_ = 0;
  std::optional<Plan> plan_;
  std::optional<Accepted> accepted_;
};

}  // namespace tw
