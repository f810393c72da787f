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
  std::vector<BoardEvaluation> evaluations;  ///< its newest ones, oldest first

  static void fields(auto& self, auto&& field) {
    field(self.now_s, self.peer, self.rounds, self.links, self.ledger, self.gone, self.barrier,
          self.evaluations);
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

/// Calls time(value, most_ahead_s) for each known time of a status: how far it may be ahead of the sender's
/// clock.
void for_each_time(auto& status, auto&& time) {
  constexpr double kDayS = 86'400;
  constexpr double kClockSetBackS = kDayS;        // times of events follow the monotonic clock
  constexpr double kLongestNoticeS = 90 * kDayS;  // maintenance is announced weeks before
  const auto call = [&](auto& value, double most_ahead_s) {
    if (value != 0) time(value, most_ahead_s);
  };
  const auto call_known = [&](auto& value, double most_ahead_s) {
    if (value) call(*value, most_ahead_s);
  };
  call(status.peer.since_s, kClockSetBackS);
  call(status.peer.heard_s, kClockSetBackS);
  if (status.peer.wait) call(status.peer.wait->since_s, kClockSetBackS);
  if (status.peer.notice) {
    call(status.peer.notice->told_s, kClockSetBackS);
    call_known(status.peer.notice->deadline_s, kLongestNoticeS);
  }
  for (auto& round : status.rounds) {
    call(round.begun_s, kClockSetBackS);
    call_known(round.called_s, kClockSetBackS);
    call_known(round.committed_s, kClockSetBackS);
  }
  for (auto& evaluation : status.evaluations) call(evaluation.at_s, kClockSetBackS);
}

/// Checks a status. Texts and lists are within their bounds; numbers are finite, and none but what a program
/// measured of its model is below 0 or beyond what they may mean.
class SoundRows {
 public:
  void operator()(const auto&... values) { (check(values), ...); }

  template <std::size_t N>
  void operator()(const char (&name)[N], const auto& value) {
    constexpr bool kIsNumber = std::is_same_v<decltype(value), const std::optional<double>&> ||
                               std::is_same_v<decltype(value), const double&>;
    if constexpr (kIsNumber) {
      if (std::string_view(name) == "loss" || std::string_view(name) == "value") return check_measured(value);
    }
    check(value);
  }

  bool are_sound() const { return sound_; }

 private:
  static constexpr double kMost = 1e12;

  void check(double value) { sound_ = sound_ && value >= 0 && value <= kMost; }

  void check(const std::optional<double>& value) { check(value.value_or(0)); }

  void check_measured(const std::optional<double>& value) {
    sound_ = sound_ && std::isfinite(value.value_or(0));
  }

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
  bool is_timely = true;
  for_each_time(status, [&](double time_s, double most_ahead_s) {
    is_timely = is_timely && time_s <= status.now_s + most_ahead_s;
  });
  return rows.are_sound() && is_timely;
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
  status.now_s += later_s;
  for_each_time(status, [&](double& time_s, double /*most_ahead_s*/) { time_s += later_s; });
  return status;
}

}  // namespace tw::wire
