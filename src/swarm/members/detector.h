// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace tw::swarm {

/// Notices peers that fall silent although their links stand. (A closed link is noticed at once, elsewhere.)
/// A process that was itself stopped does not blame the others: when step() comes late, all silences start
/// afresh.
class Detector {
 public:
  struct Silence {
    PeerId peer;
    Duration silent{};
  };

  /// A step later than this means that the process was stopped (SIGSTOP, a suspended VM).
  static constexpr Duration kStopped = std::chrono::seconds(1);

  void open(Instant now, PeerId peer);
  void close(PeerId peer);
  void heard(Instant now, PeerId peer);
  /// sample: a round trip that ends now. One that began before this process was stopped is ignored.
  void round_trip(Instant now, PeerId peer, Duration sample);

  /// The peer announced that it will be heard again within this time.
  void expect(PeerId peer, Duration within);

  /// While a round is overdue, the least limit of step() is 1 s instead of 2 s.
  void hurry(bool hurries);

  /// Peers silent for longer than max(2 s, 6 round trips, 4 times what they announced). Call it often (its
  /// own interval is 250 ms).
  std::vector<Silence> step(Instant now);

  Instant next_step() const { return next_step_; }

  /// Smoothed round trip; 0 when not measured yet.
  Duration round_trip(PeerId peer) const;
  Duration silence(Instant now, PeerId peer) const;

 private:
  struct Pulse {
    Instant last{};
    Duration rtt{};
    Duration within{};  // expect()
    Instant check{};    // in checks_
  };

  Duration limit(const Pulse& pulse) const;
  bool is_waking(Instant now) const;  ///< from a stop of this process

  void check_at(Instant when, PeerId peer, Pulse& pulse);

  std::unordered_map<PeerId, Pulse> pulses_;
  std::set<std::pair<Instant, PeerId>> checks_;  // one per peer: when it could be found silent
  Instant next_step_{};
  Instant woke_at_{};  ///< after the last stop of this process
  bool hurries_ = false;
};

}  // namespace tw::swarm
