// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/measured_peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/median.h"

namespace tw::cli {
namespace {

/// The share of all rounds that does not count, where it is more than kWarmUpRounds.
constexpr double kWarmUpShare = 0.1;

double number_of(const event::Count& count) { return static_cast<double>(count.value_or(0)); }

/// Samples/s of the round; nothing where this peer had no part in it.
std::optional<double> speed_of(const event::Commit& commit) {
  const double samples = number_of(commit.samples), seconds = commit.calc_s.value_or(0);
  return samples > 0 && seconds > 0 ? std::optional(samples / seconds) : std::nullopt;
}

void take_start(const event::Start& start, MeasuredPeer& measured) {
  measured.parameters = number_of(start.parameters);
  measured.tensors = std::max(1.0, number_of(start.tensors));
  measured.state_bytes = number_of(start.state_bytes);
  measured.hardware = start.hardware;
}

}  // namespace

void PeerMeter::take(const monitor::LogEntry& entry) {
  const world::Event& event = entry.event;
  if (const auto* start = event.as<event::Start>()) take_start(*start, facts_);
  if (const event::Use* use = world::use_in(event))
    facts_.peak_memory_bytes = std::max(facts_.peak_memory_bytes, number_of(use->peak_memory));
  const auto* commit = event.as<event::Commit>();
  if (commit == nullptr) return;
  ++rounds_;
  if (const auto speed = speed_of(*commit)) speeds_.push_back(*speed);
}

Result<MeasuredPeer> PeerMeter::measured() const {
  MeasuredPeer measured = facts_;
  const auto all = static_cast<int>(speeds_.size());
  measured.warm_up = std::max(kWarmUpRounds, static_cast<int>(kWarmUpShare * all));
  measured.rounds = all - measured.warm_up;
  if (measured.rounds < kLeastRounds)
    return Error{
        fmt::format("{} rounds were trained, and at least {} are needed: a smaller target batch size, or "
                    "more rounds of the program",
                    all, kWarmUpRounds + kLeastRounds)};
  std::vector<double> speeds = speeds_;
  speeds.erase(speeds.begin(), speeds.begin() + measured.warm_up);
  measured.samples_per_s = median(speeds);
  measured.spread = std::max(measured.samples_per_s / quantile(speeds, 0.1),
                             quantile(speeds, 0.9) / measured.samples_per_s);
  return measured;
}

}  // namespace tw::cli
