// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "base/check.h"
#include "base/time.h"
#include "wire/swarm_messages.h"

namespace tw::swarm {

/// For how long this peer expects to be here, and how it goes when it has to: after the round, or as soon as
/// a custodian has what it did. A value with checked transitions.
class Farewell {
 public:
  enum class Stage : std::uint8_t {
    none,       ///< the end of the round is waited for, if anything
    ordered,    ///< the leader has named a custodian; a microbatch is under way
    sending,    ///< the sums are on their way
    entrusted,  ///< they are the custodian's
  };

  /// So long before its machine stands still it begins to say so.
  static constexpr Duration kTellsFreeze = std::chrono::seconds(2);

  Stage stage() const { return stage_; }

  /// Its seat is somebody else's: it neither promises nor votes any more in this round.
  bool gave_seat() const { return given_seat_.has_value(); }

  wire::Outlook outlook() const { return outlook_; }

  /// It has to be gone by then.
  void leave_by(Instant deadline) {
    outlook_ = wire::Outlook::leaves;
    deadline_ = deadline;
  }

  /// Its machine may be taken away soon, or is safe again.
  void set_at_risk(bool at_risk) {
    if (outlook_ != wire::Outlook::leaves)
      outlook_ = at_risk ? wire::Outlook::at_risk : wire::Outlook::steady;
  }

  /// Its machine is about to stand still.
  void freeze(Instant from, Duration lasts) {
    freezes_from_ = from;
    freezes_for_ = lasts;
  }

  /// While silence has to be expected of it: how long it may last. Otherwise 0.
  Duration silence_ahead(Instant now) const {
    const bool soon = now >= freezes_from_ - kTellsFreeze && now < freezes_from_ + freezes_for_;
    return soon ? freezes_for_ : Duration{};
  }

  /// 0 without a deadline.
  double leaves_in_s(Instant now) const {
    return deadline_ ? std::max(1e-3, to_seconds(*deadline_ - now)) : 0;
  }

  /// True when the custodian is another one than before.
  bool order(Instant now, const wire::HandOver& order) {
    TW_CHECK(!order.released && outlook_ == wire::Outlook::leaves);
    const bool known = stage_ != Stage::none && order.to == order_.to;
    order_ = order;
    if (known) return false;
    stage_ = Stage::ordered;
    ordered_at_ = now;
    return true;
  }

  const wire::HandOver& order() const { return order_; }

  Duration since_order(Instant now) const { return now - ordered_at_; }

  void send() {
    TW_CHECK(stage_ == Stage::ordered);
    stage_ = Stage::sending;
  }

  /// True when the seat goes with what was sent: nobody else has it.
  bool entrust() {
    TW_CHECK(stage_ == Stage::sending || stage_ == Stage::entrusted);
    stage_ = Stage::entrusted;
    if (!given_seat_) given_seat_ = order_.to;
    return *given_seat_ == order_.to;
  }

  /// The round is averaged: the sums are contributed from here after all.
  void call_off() { stage_ = Stage::none; }

  void begin_round() {
    stage_ = Stage::none;
    given_seat_.reset();
  }

 private:
  Stage stage_ = Stage::none;
  wire::Outlook outlook_ = wire::Outlook::steady;
  std::optional<Instant> deadline_;
  wire::HandOver order_;
  Instant ordered_at_{};
  std::optional<PeerId> given_seat_;  ///< to whom, in this round
  Instant freezes_from_{};
  Duration freezes_for_{};
};

}  // namespace tw::swarm
