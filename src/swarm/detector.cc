// SPDX-License-Identifier: Apache-2.0
#include "swarm/detector.h"

#include <algorithm>

namespace tw {
namespace {

using namespace std::chrono_literals;

constexpr Duration kSilenceFloor = 2s;  // docs/protocol.md
constexpr int kSilenceRoundTrips = 6;
constexpr Duration kInterval = 250ms;
/// Beyond this a sample is a mistake of the other side, not a path on this planet.
constexpr Duration kLongestRoundTrip = 60s;
/// A step that comes later than this was not late but stopped (SIGSTOP, a suspended VM).
constexpr Duration kStopped = 1s;

}  // namespace

void Detector::open(Instant now, PeerId peer) { pulses_[peer] = Pulse{now, {}}; }

void Detector::close(PeerId peer) { pulses_.erase(peer); }

void Detector::heard(Instant now, PeerId peer) {
  const auto found = pulses_.find(peer);
  if (found != pulses_.end()) found->second.last = now;
}

void Detector::round_trip(PeerId peer, Duration sample) {
  const auto found = pulses_.find(peer);
  if (found == pulses_.end() || sample < Duration{0} || sample > kLongestRoundTrip) return;
  Duration& rtt = found->second.rtt;
  rtt = rtt == Duration{0} ? sample : rtt + (sample - rtt) / 8;  // RFC 6298's gain
}

std::vector<Detector::Silence> Detector::step(Instant now) {
  if (now < next_step_) return {};
  const bool stopped = next_step_ != Instant{} && now - next_step_ > kStopped;
  next_step_ = now + kInterval;
  std::vector<Silence> silences;
  for (auto& [peer, pulse] : pulses_) {
    if (stopped) pulse.last = now;
    const Duration silent = now - pulse.last;
    if (silent > std::max<Duration>(kSilenceFloor, kSilenceRoundTrips * pulse.rtt))
      silences.push_back({peer, silent});
  }
  return silences;
}

Duration Detector::round_trip(PeerId peer) const {
  const auto found = pulses_.find(peer);
  return found == pulses_.end() ? Duration{0} : found->second.rtt;
}

Duration Detector::silence(Instant now, PeerId peer) const {
  const auto found = pulses_.find(peer);
  return found == pulses_.end() ? Duration{0} : now - found->second.last;
}

}  // namespace tw
