// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace tw {

/// Notices peers that fall silent although their links stand. (A closed link is noticed at once, elsewhere.)
/// A process that was itself stopped does not blame the others: when step() comes late, everybody starts
/// afresh.
class Detector {
 public:
  struct Silence {
    PeerId peer;
    Duration silent{};
  };

  void open(Instant now, PeerId peer);
  void close(PeerId peer);
  void heard(Instant now, PeerId peer);
  void round_trip(PeerId peer, Duration sample);

  /// Peers silent for longer than max(2 s, 6 round trips); call it often (its own interval is 250 ms).
  std::vector<Silence> step(Instant now);

  Instant next_step() const { return next_step_; }

  /// Smoothed; 0 when not measured yet.
  Duration round_trip(PeerId peer) const;
  Duration silence(Instant now, PeerId peer) const;

 private:
  struct Pulse {
    Instant last{};
    Duration rtt{};
  };

  std::map<PeerId, Pulse> pulses_;
  Instant next_step_{};
};

}  // namespace tw
