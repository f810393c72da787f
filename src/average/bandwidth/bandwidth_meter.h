// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "base/time.h"
#include "wire/bandwidth.h"
#include "wire/messages.h"

namespace tw::average {

/// Measured bandwidth of this peer in one direction, over all peers.
class BandwidthSide {
 public:
  /// These bytes crossed evenly over this time.
  void carried(Instant from, Instant to, std::uint64_t bytes);

  /// The sender was backlogged for the whole interval: the capacity is at least the highest rate over 0.3 s.
  void raise(Instant from, Instant to);

  /// Backlogged or not: the capacity is at least the rate of the second before this.
  void correct(Instant at);

  /// It carried at least 85 % of its capacity in the 0.3 s before this.
  bool is_full(Instant at) const;

  /// The sender had more than was carried in the 0.3 s before, and nothing else explains why.
  void lower(Instant at);

  /// The sender had more than was carried. other_is_full: the other end reports that it is full itself.
  void had_more(bool other_is_full) {
    if (!other_is_full) fate_ = std::max(fate_, Fate::pressed);
  }

  /// A round is over. If no traffic pressed this direction, its bandwidth may be higher than seen of late:
  /// the capacity doubles, up to the most that was ever seen. After each failed try it waits one round longer
  /// than before.
  void end_round();

  double capacity() const { return capacity_; }

 private:
  static constexpr std::int64_t kBins = 64;

  struct Bin {
    std::int64_t number = -1;
    double bytes = 0;
  };

  double rate_before(std::int64_t bin, std::int64_t bins) const;

  /// How traffic pressed this direction in this round.
  enum class Fate { unpressed, pressed, lowered };

  void show(double rate);

  std::array<Bin, kBins> bins_{};
  double capacity_ = 0;  ///< bytes/s
  double shown_ = 0;     ///< the highest rate seen; forgotten slowly
  double carried_ = 0;   ///< bytes, in this round
  Fate fate_ = Fate::unpressed;
  int failures_ = 0;  ///< rounds that lowered it since a higher rate was seen
  int wait_ = 0;      ///< rounds until it is tried again
};

/// Learns this peer's bandwidth from the bulk messages that it sends and gets anyway. Receivers report to
/// senders what arrived (BandwidthReport), so both ends know the rate of each pair.
///
/// A capacity is the highest rate over 0.3 s during which some sender was backlogged: long enough to even out
/// what a process reads at once after a pause, short enough for rounds of a second. Little traffic does not
/// lower it. Only a sender that is backlogged all the while, though neither end is full, lowers it: by a
/// fifth of the difference ten times a second, so that most of a change is known after a second of traffic. A
/// peer with a low capacity gets a small share, which can never show more. So end_round() tries more after
/// rounds that did not press it. A pair is slow, not a peer's bandwidth, if such a sender moves twice as fast
/// towards another peer, or the receiver gets twice as much from another one. What a pair known to be slow
/// explains does not lower the capacity.
///
/// A step machine.
class BandwidthMeter {
 public:
  static constexpr Duration kWindow = std::chrono::milliseconds(100);

  /// A bulk message for this peer is on its way.
  void handed(Instant now, PeerId to);

  /// Nothing is left to send to this peer at present.
  void ran_dry(PeerId to) { out_[to].flowing_since = kNever; }

  void on_bandwidth_report(Instant now, PeerId from, const wire::BandwidthReport& bandwidth_report,
                           Duration round_trip);

  /// A bulk message of this size came. asked: it is one of many that this peer asked for, so its sender has
  /// more (a state transfer). Returns what to report to its sender, at most once in kWindow.
  std::optional<wire::BandwidthReport> arrived(Instant now, PeerId from, std::uint64_t bytes,
                                               bool asked = false);

  void on_close(PeerId peer);

  /// A round is decided.
  void end_round();

  wire::Bandwidth bandwidth() const;

 private:
  struct Window {
    std::uint64_t bytes = 0;
    Duration took{};
  };

  /// The last windows of one pair in one direction.
  struct Flow {
    std::array<Window, 3> windows{};
    std::size_t next = 0;
    Instant at{};

    void add(Instant now, Window window);
    double rate() const;
    Duration took() const;
  };

  struct Out {
    Flow flow;
    Instant flowing_since = kNever;  ///< the sender was backlogged since then
    Instant handed_at{};
    Instant raised_at{};
    double limit = 0;  ///< of the pair; 0: none is known

    bool is_as_usual() const;
  };

  struct In {
    Flow flow;
    Instant began_at = kNever;  ///< of the window under way
    Instant open_until{};       ///< after a gap, bytes that came meanwhile are read at once: they are its
    Instant came_at{};
    Duration usual_gap{};
    std::uint64_t bytes = 0;
    std::optional<wire::BandwidthReport> told;  ///< by the sender, about this peer's own messages to it
    Instant told_at{};
  };

  template <class Way>
  static bool is_outpaced(Instant now, PeerId peer, const std::map<PeerId, Way>& ways, double times);
  template <class Way>
  static bool fills(Instant now, PeerId peer, const BandwidthSide& side, const std::map<PeerId, Way>& ways);
  bool is_held_back(Instant now, PeerId from) const;
  bool is_anybody_else_held_back(Instant now, PeerId from) const;

  BandwidthSide up_, down_;
  std::map<PeerId, Out> out_;
  std::map<PeerId, In> in_;
};

}  // namespace tw::average
