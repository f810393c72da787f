// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/times.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace tw::measure {
namespace {

template <class Kind>
const world::Event* first_of(const std::vector<monitor::LogEntry>& log, Round round) {
  const auto found = std::find_if(log.begin(), log.end(), [&](const monitor::LogEntry& entry) {
    return entry.event.as<Kind>() && entry.event.round == round;
  });
  return found == log.end() ? nullptr : &found->event;
}

template <class Value>
double grown(const std::optional<Value>& from, const std::optional<Value>& to) {
  return static_cast<double>(to.value_or(0)) - static_cast<double>(from.value_or(0));
}

}  // namespace

Result<RoundTimes> times_of(const PeerLogs& logs, Round round, Instant begun) {
  RoundTimes times;
  for (const auto& [peer, log] : logs) {
    const world::Event* call = first_of<event::Call>(log, round);
    const world::Event* gather = first_of<event::Gather>(log, round);
    const world::Event* commit = first_of<event::Commit>(log, round);
    if (call == nullptr || gather == nullptr || commit == nullptr)
      return Error{fmt::format("peer {} took no part in round {}", to_string(peer), round)};
    const world::Event* scatter = first_of<event::Scatter>(log, round);
    times.call_s = std::max(times.call_s, to_seconds(call->at - begun));
    times.sums_s = std::max(times.sums_s, to_seconds((scatter == nullptr ? gather : scatter)->at - begun));
    times.mean_s = std::max(times.mean_s, to_seconds(gather->at - begun));
    times.commit_s = std::max(times.commit_s, to_seconds(commit->at - begun));
    const event::Use& before = *use_in(*call);
    const event::Use& after = *use_in(*commit);
    times.cpu_s += grown(before.cpu_s, after.cpu_s);
    times.kernel_s += grown(before.kernel_s, after.kernel_s);
    times.peak_memory = std::max(times.peak_memory, static_cast<double>(after.peak_memory.value_or(0)));
    times.bytes_sent[peer] = grown(before.bytes_sent, after.bytes_sent);
  }
  return times;
}

std::optional<Instant> first_call(const PeerLogs& logs, Round round) {
  std::optional<Instant> first;
  for (const auto& [peer, log] : logs) {
    const world::Event* call = first_of<event::Call>(log, round);
    if (call != nullptr && (!first || call->at < *first)) first = call->at;
  }
  return first;
}

PeerId leader_in(const PeerLogs& logs) {
  TW_CHECK(!logs.empty());
  PeerId leader = logs.begin()->first;
  Instant since{};
  for (const auto& [peer, log] : logs) {
    for (const monitor::LogEntry& entry : log) {
      if (!entry.event.as<event::Lead>() || entry.event.at < since) continue;
      since = entry.event.at;
      leader = peer;
    }
  }
  return leader;
}

}  // namespace tw::measure
