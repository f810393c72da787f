// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/detector.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "swarm/straggler_policy.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLongestInterval = 32s;  // HeartbeatSchedule; a peer that announces more is not believed
constexpr Duration kInterval = 250ms;
/// Beyond this a sample is a mistake of the other side, not a path on this planet.
constexpr Duration kLongestRoundTrip = 60s;

}  // namespace

Duration Detector::limit(const Pulse& pulse) const {
  return silence_limit(pulse.rtt, pulse.within, hurries_);
}

void Detector::hurry(bool hurries) {
  if (std::exchange(hurries_, hurries) || !hurries) return;
  for (auto& [peer, pulse] : pulses_) check_at(pulse.last + limit(pulse), peer, pulse);
}

void Detector::check_at(Instant when, PeerId peer, Pulse& pulse) {
  checks_.erase({pulse.check, peer});
  pulse.check = when;
  checks_.emplace(when, peer);
  TW_CHECK(checks_.size() == pulses_.size());
}

void Detector::open(Instant now, PeerId peer) {
  close(peer);
  Pulse& pulse = pulses_[peer];
  pulse.last = now;
  check_at(now + limit(pulse), peer, pulse);
}

void Detector::close(PeerId peer) {
  const auto found = pulses_.find(peer);
  if (found == pulses_.end()) return;
  checks_.erase({found->second.check, peer});
  pulses_.erase(found);
  TW_CHECK(checks_.size() == pulses_.size());
}

void Detector::heard(Instant now, PeerId peer) {
  const auto found = pulses_.find(peer);
  if (found != pulses_.end()) found->second.last = now;
}

bool Detector::is_waking(Instant now) const { return next_step_ != Instant{} && now - next_step_ > kStopped; }

void Detector::round_trip(Instant now, PeerId peer, Duration sample) {
  const Instant awake_since = is_waking(now) ? now : woke_at_;
  const auto found = pulses_.find(peer);
  if (found == pulses_.end() || sample < Duration{0} || sample > kLongestRoundTrip) return;
  if (now - sample < awake_since) return;
  Duration& rtt = found->second.rtt;
  rtt = rtt == Duration{0} ? sample : rtt + (sample - rtt) / 8;  // RFC 6298's gain
}

void Detector::expect(PeerId peer, Duration within) {
  const auto found = pulses_.find(peer);
  if (found == pulses_.end()) return;
  Pulse& pulse = found->second;
  pulse.within = std::clamp<Duration>(within, 0s, kLongestInterval);
  const Instant end = pulse.last + limit(pulse);
  if (end < pulse.check) check_at(end, peer, pulse);
}

std::vector<Detector::Silence> Detector::step(Instant now) {
  if (now < next_step_) return {};
  const bool stopped = is_waking(now);
  if (stopped) woke_at_ = now;
  next_step_ = now + kInterval;
  if (stopped) {
    for (auto& [peer, pulse] : pulses_) pulse.last = now;
  }
  std::vector<Silence> silences;
  while (!checks_.empty() && checks_.begin()->first <= now) {
    const PeerId peer = checks_.begin()->second;
    Pulse& pulse = pulses_.at(peer);
    const Duration silent = now - pulse.last;
    if (silent > limit(pulse)) silences.push_back({peer, silent});
    check_at(std::max<Instant>(pulse.last + limit(pulse), next_step_), peer, pulse);
  }
  std::sort(silences.begin(), silences.end(),
            [](const Silence& a, const Silence& b) { return a.peer < b.peer; });
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

}  // namespace tw::swarm
