// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text/number.h"
#include "measure/net_probe.h"

namespace tw::measure {
namespace {

constexpr double kBytesOfMbit = 1e6 / 8;
constexpr Duration kClockTime = std::chrono::seconds(2);  ///< probes of older versions do not answer
constexpr Duration kDialBackTime = std::chrono::seconds(40);
constexpr std::string_view kClock = "clock ", kFailed = "failed ";

}  // namespace

PeerFacts Probe::meet(const std::string& address) {
  PeerFacts facts{.address = address};
  const auto peer = dial(address);
  if (!peer) {
    const auto refusal = refused_.find(address);
    facts.why = refusal == refused_.end() ? "no answer" : refusal->second.why;
    const bool talks = refusal != refused_.end() && !refusal->second.is_stranger &&
                       refusal->second.kind == world::DialFailure::Kind::turned_away;
    if (talks) facts.answer = PeerFacts::Answer::peer;
    return facts;
  }
  const auto measured = measure(peer.value());
  if (!measured) {
    facts.why = measured.error().message;
    return facts;
  }
  facts.answer = PeerFacts::Answer::probe;
  facts.rtt_s = measured.value().rtt_s;
  facts.out_mbit_s = measured.value().out_bytes_per_s / kBytesOfMbit;
  facts.in_mbit_s = measured.value().in_bytes_per_s / kBytesOfMbit;
  return facts;
}

std::optional<double> Probe::skew_s(const std::string& address) {
  const auto peer = dial(address);
  if (!peer) return std::nullopt;
  others_[peer.value()].told.reset();
  const std::int64_t before = loop_.unix_nanos();
  say(peer.value(), "time");
  const auto told = told_by(peer.value(), kClockTime);
  const std::int64_t after = loop_.unix_nanos();
  if (!told || !told.value().starts_with(kClock)) return std::nullopt;
  const auto there = parse_number<std::int64_t>(told.value().substr(kClock.size()));
  if (!there) return std::nullopt;
  return static_cast<double>(*there - (before + (after - before) / 2)) * 1e-9;
}

std::optional<std::string> Probe::refusal_of(const std::string& address, const std::string& own) {
  const auto peer = dial(address);
  if (!peer) return peer.error().message;
  others_[peer.value()].told.reset();
  say(peer.value(), "measure " + own);
  const auto told = told_by(peer.value(), kDialBackTime + options_.time);
  if (!told) return told.error().message;
  if (!told.value().starts_with(kFailed)) return std::nullopt;
  return told.value().substr(kFailed.size());
}

market::Site Probe::site_of(const std::string& address) const {
  const auto found = std::find_if(others_.begin(), others_.end(),
                                  [&](const auto& other) { return other.second.address == address; });
  return found == others_.end() ? market::Site{} : found->second.site;
}

}  // namespace tw::measure
