// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "base/check.h"
#include "base/time.h"
#include "wire/swarm_messages.h"

namespace tw::swarm {

/// Time that this peer expects to be here, and the way it goes when it has to: after the round, or as soon as
/// a custodian has its sums. A value with checked transitions.
class Farewell {
 public:
  enum class Stage : std::uint8_t {
    none,       ///< it waits for the end of the round, if for anything
    ordered,    ///< the leader has named a custodian; a microbatch is under way
    sending,    ///< the sums are on their way
    entrusted,  ///< they are the custodian's
  };

  /// It announces a standstill of its machine this long before.
  static constexpr Duration kTellsFreeze = std::chrono::seconds(2);

  Stage stage() const { return stage_; }

  /// Another peer has its seat: it neither promises nor votes any more in this round.
  bool gave_seat() const { return given_seat_.has_value(); }

  wire::Outlook outlook() const { return outlook_; }

  /// It has to be gone by this deadline.
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

  /// How long it may be silent, while a silence is to be expected; otherwise 0.
  Duration silence_ahead(Instant now) const {
    const bool soon = now >= freezes_from_ - kTellsFreeze && now < freezes_from_ + freezes_for_;
    return soon ? freezes_for_ : Duration{};
  }

  /// 0 without a deadline.
  double leaves_in_s(Instant now) const {
    return deadline_ ? std::max(1e-3, to_seconds(*deadline_ - now)) : 0;
  }

  /// True when the custodian is a new one.
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

  /// True when the seat goes with the sums: no other peer has it.
  bool entrust() {
    TW_CHECK(stage_ == Stage::sending || stage_ == Stage::entrusted);
    stage_ = Stage::entrusted;
    return give_seat(order_.to);
  }

  /// False when another peer has it.
  bool give_seat(PeerId to) {
    if (!given_seat_) given_seat_ = to;
    return *given_seat_ == to;
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
  std::optional<PeerId> given_seat_;  ///< the peer that has it, in this round
  Instant freezes_from_{};
  Duration freezes_for_{};
};

}  // namespace tw::swarm
