// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/ids.h"
#include "wire/board_rows.h"
#include "wire/limits.h"

namespace tw::wire {

/// What peers cost and told that are gone, as far as the sender knows: one that came later learns it from it.
struct GonePeers {
  double hours = 0, priced_hours = 0, machines_usd = 0, egress_usd = 0, requests_usd = 0;
  SampleLedger ledger;

  static void fields(auto& self, auto&& field) {
    field(self.hours, self.priced_hours, self.machines_usd, self.egress_usd, self.requests_usd, self.ledger);
  }

  bool operator==(const GonePeers&) const = default;
};

/// Where the sender stands in the barriers of the run (peer/barrier.h): at which it is, or was last.
struct BarrierWord {
  std::uint64_t number = 0;
  bool stands = false;

  static void fields(auto& self, auto&& field) { field(self.number, self.stands); }

  bool operator==(const BarrierWord&) const = default;
};

/// A peer's rows of its board once a second, for display only: they decide nothing.
struct Status {
  double now_s = 0;                ///< by the sender's clock, as all times here: clocks differ
  BoardPeer peer;                  ///< the sender
  std::vector<BoardRound> rounds;  ///< its part of the last rounds, the newest last; calc_s, comm_s if it led
  std::vector<BoardLink> links;    ///< its own traffic, unpriced
  SampleLedger ledger;             ///< samples of which its own events tell, since its process began
  GonePeers gone;
  BarrierWord barrier;

  static void fields(auto& self, auto&& field) {
    field(self.now_s, self.peer, self.rounds, self.links, self.ledger, self.gone, self.barrier);
  }

  bool operator==(const Status&) const = default;
};

/// No byte of a character is left alone at its end.
inline std::string cut_text(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  text.resize(most);
  return text;
}

/// Checks a status. Texts and lists are within their bounds; numbers are finite, and none but a loss is below
/// 0 or beyond what they may mean.
class SoundRows {
 public:
  void operator()(const auto&... values) { (check(values), ...); }

  template <std::size_t N>
  void operator()(const char (&name)[N], const auto& value) {
    if constexpr (std::is_same_v<decltype(value), const std::optional<double>&>) {
      if (std::string_view(name) == "loss") return check_loss(value);
    }
    check(value);
  }

  bool are_sound() const { return sound_; }

 private:
  static constexpr double kMost = 1e12;

  void check(double value) { sound_ = sound_ && value >= 0 && value <= kMost; }

  void check(const std::optional<double>& value) { check(value.value_or(0)); }

  void check_loss(const std::optional<double>& loss) { sound_ = sound_ && std::isfinite(loss.value_or(0)); }

  void check(const std::string& text) { sound_ = sound_ && text.size() <= kMostRowText; }

  template <class T>
  void check(const std::vector<T>& rows) {
    sound_ = sound_ && rows.size() <= kMostRows;
    for (const T& row : rows) check(row);
  }

  template <class T>
  void check(const std::optional<T>& row) {
    if (row) check(*row);
  }

  template <class T>
  void check(const T& value) {
    if constexpr (requires { T::fields(value, *this); }) T::fields(value, *this);
  }

  bool sound_ = true;
};

inline bool is_sound(const Status& status) {
  SoundRows rows;
  Status::fields(status, rows);
  return rows.are_sound();
}

/// Cuts texts and lists that are beyond their bounds.
class CutRows {
 public:
  void operator()(auto&... values) { (cut(values), ...); }

  template <std::size_t N>
  void operator()(const char (&)[N], auto& value) {
    cut(value);
  }

 private:
  static void cut(std::string& text) { text = cut_text(std::move(text), kMostRowText); }

  template <class T>
  void cut(std::vector<T>& rows) {
    if (rows.size() > kMostRows) rows.resize(kMostRows);
    for (T& row : rows) cut(row);
  }

  template <class T>
  void cut(std::optional<T>& row) {
    if (row) cut(*row);
  }

  template <class T>
  void cut(T& value) {
    if constexpr (requires { T::fields(value, *this); }) T::fields(value, *this);
  }
};

inline void cut(Status& status) {
  CutRows rows;
  Status::fields(status, rows);
}

/// The status by a clock that is so much later.
inline Status moved(Status status, double later_s) {
  const auto move = [&](double& time) {
    if (time != 0) time += later_s;
  };
  const auto move_known = [&](std::optional<double>& time) {
    if (time) move(*time);
  };
  BoardPeer& peer = status.peer;
  move(status.now_s);
  move(peer.since_s);
  move(peer.heard_s);
  if (peer.wait) move(peer.wait->since_s);
  if (peer.notice) move(peer.notice->told_s);
  if (peer.notice) move_known(peer.notice->deadline_s);
  for (BoardRound& round : status.rounds) {
    move(round.begun_s);
    move_known(round.called_s);
    move_known(round.committed_s);
  }
  return status;
}

}  // namespace tw::wire
