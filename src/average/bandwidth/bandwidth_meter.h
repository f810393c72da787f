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

/// What one direction of a line was seen to carry, over all peers.
class BandwidthSide {
 public:
  /// So many bytes crossed it evenly over this time.
  void carried(Instant from, Instant to, std::uint64_t bytes);

  /// It had as much to carry as it could meanwhile: its capacity is at least the highest rate of 0.3 s.
  void raise(Instant from, Instant to);

  /// Whatever it had to carry: what is known of its capacity is not below the rate of the second before this.
  void correct(Instant at);

  /// It carried at least 85 % of its capacity in the 0.3 s before this.
  bool is_full(Instant at) const;

  /// It was asked for more than it carried in the 0.3 s before, and nothing else explains why.
  void lower(Instant at);

  /// It was asked for more than it carried; whether the other end says that it is full itself.
  void had_more(bool other_is_full) {
    if (!other_is_full) fate_ = std::max(fate_, Fate::pressed);
  }

  /// A round is over. Where no traffic pressed this line, it may carry more than it showed of late: what it
  /// is taken to carry doubles, up to the most that it ever showed. After each failure it is left alone for
  /// one round more than after the one before.
  void end_round();

  double capacity() const { return capacity_; }

 private:
  static constexpr std::int64_t kBins = 64;

  struct Bin {
    std::int64_t number = -1;
    double bytes = 0;
  };

  double rate_before(std::int64_t bin, std::int64_t bins) const;

  /// What became of it in this round.
  enum class Fate { unpressed, pressed, lowered };

  void show(double rate);

  std::array<Bin, kBins> bins_{};
  double capacity_ = 0;  ///< bytes/s
  double shown_ = 0;     ///< the most that was seen of it; forgotten slowly
  double carried_ = 0;   ///< bytes, in this round
  Fate fate_ = Fate::unpressed;
  int failures_ = 0;  ///< rounds that lowered it since it showed more
  int wait_ = 0;      ///< rounds until it is tried again
};

/// Learns what this peer's line carries from the bulk messages that it sends and gets anyway. Receivers tell
/// senders what came (BandwidthReport), so both ends know the rate of each pair.
///
/// A capacity is the highest rate that was kept up for 0.3 s while some sender had more all the while: long
/// enough to even out what a process reads at once after a pause, short enough for rounds of a second.
/// Neither an idle line lowers it nor one with little to do, but only a sender that had more all the while,
/// though neither line was full: then by a fifth of the difference ten times a second, so that within a
/// second of traffic most of a change is known. A line that is taken to be slow gets a small share, which
/// never shows that it could do more: so it is tried again after rounds that did not press it (end_round).
/// Where such a sender moves twice as fast towards another peer, or the receiver gets twice as much from
/// another one, the pair is slow, not a line. What is explained by a pair that is known to be slow blames no
/// line.
///
/// A step machine.
class BandwidthMeter {
 public:
  static constexpr Duration kWindow = std::chrono::milliseconds(100);

  /// A bulk message for this peer is on its way.
  void handed(Instant now, PeerId to);

  /// Nothing is left to be sent to it at present.
  void ran_dry(PeerId to) { out_[to].flowing_since = kNever; }

  void on_bandwidth_report(Instant now, PeerId from, const wire::BandwidthReport& bandwidth_report,
                           Duration round_trip);

  /// A bulk message of so many bytes came; what its sender is to be told, at most once in kWindow.
  std::optional<wire::BandwidthReport> arrived(Instant now, PeerId from, std::uint64_t bytes);

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
    Instant flowing_since = kNever;  ///< there was always more to send
    Instant handed_at{};
    Instant raised_at{};
    double limit = 0;  ///< of the pair; 0: none is known

    bool is_as_usual() const;
  };

  struct In {
    Flow flow;
    Instant began_at = kNever;  ///< of the window under way
    Instant open_until{};       ///< after a gap, what came meanwhile is read at once: it belongs to the gap
    Instant came_at{};
    Duration usual_gap{};
    std::uint64_t bytes = 0;
    std::optional<wire::BandwidthReport> told;  ///< by the sender, of this peer's own messages to it
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
