// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/log_source.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <queue>
#include <utility>

namespace tw::monitor {

namespace {

/// Clocks that are less apart are those of one machine since its start.
constexpr Duration kSameClock = std::chrono::seconds(1);

Duration offset_of(const LogEntry& entry) {
  return Duration(entry.unix_nanos) - entry.event.at.time_since_epoch();
}

}  // namespace

void ClockOffsets::note(const LogEntry& entry) {
  ++counts_[std::chrono::floor<std::chrono::milliseconds>(offset_of(entry)).count()];
}

Duration ClockOffsets::usual() const {
  TW_CHECK(!counts_.empty());
  std::uint64_t all = 0, seen = 0;
  for (const auto& [offset, count] : counts_) all += count;
  for (const auto& [offset, count] : counts_) {
    seen += count;
    if (2 * seen >= all) return std::chrono::milliseconds(offset);
  }
  return std::chrono::milliseconds(counts_.rbegin()->first);
}

Duration shift_between(Duration first, Duration other) {
  const Duration apart = other - first;
  return std::chrono::abs(apart) < kSameClock ? Duration{} : apart;
}

void LogClock::note(const LogEntry& entry, const std::string& run, const LogPlace& end) {
  const Duration offset = offset_of(entry);
  const bool steps_back = entry.event.at + kSameClock < at_;
  const bool jumps = entry.event.as<event::Start>() && shift_between(offset_, offset) != Duration{};
  if (stretches_.empty() || steps_back || jumps || run != stretches_.rbegin()->second.run)
    stretches_[end].run = run;
  stretches_.rbegin()->second.offsets.note(entry);
  at_ = entry.event.at;
  offset_ = offset;
}

LogClock::Shifts LogClock::shifts(std::optional<Duration>& first,
                                  const std::function<bool(const std::string& run)>& goes_along) const {
  Shifts shifts;
  for (const auto& [end, stretch] : stretches_) {
    if (!goes_along(stretch.run)) continue;
    const Duration offset = stretch.offsets.usual();
    if (!first) first = offset;
    shifts[end] = stretch.shift.value_or(shift_between(*first, offset));
  }
  return shifts;
}

void LogClock::fix(const Shifts& shifts) {
  for (const auto& [end, shift] : shifts) stretches_.at(end).shift = shift;
}

void LogClock::loosen() {
  for (auto& [end, stretch] : stretches_) stretch.shift.reset();
}

Duration shift_at(const LogClock::Shifts& shifts, const LogPlace& end) {
  const auto after = shifts.upper_bound(end);
  return after == shifts.begin() ? Duration{} : std::prev(after)->second;
}

Status in_order(std::size_t logs, const std::function<Result<std::optional<LogEntry>>(std::size_t)>& next,
                const LogSource::Take& take) {
  using Place = std::pair<Instant, std::size_t>;
  std::vector<LogEntry> heads(logs);
  std::priority_queue<Place, std::vector<Place>, std::greater<>> queue;
  const auto advance = [&](std::size_t log, Instant no_earlier) -> Status {
    TW_TRY(auto entry, next(log));
    if (!entry) return Unit{};
    heads[log] = std::move(*entry);
    queue.emplace(std::max(no_earlier, heads[log].event.at), log);
    return Unit{};
  };
  for (std::size_t log = 0; log < logs; ++log) TW_TRY(advance(log, Instant::min()));
  while (!queue.empty()) {
    const auto [at, log] = queue.top();
    queue.pop();
    take(heads[log], log);
    TW_TRY(advance(log, at));
  }
  return Unit{};
}

HeldLogs::HeldLogs(const std::vector<std::vector<LogEntry>>& logs) : logs_(logs) {
  std::optional<Duration> first;
  for (const std::vector<LogEntry>& log : logs) {
    LogClock clock;
    for (std::size_t i = 0; i < log.size(); ++i) clock.note(log[i], {}, {.bytes = i});
    shifts_.push_back(clock.shifts(first, [](const std::string&) { return true; }));
  }
}

Status HeldLogs::each(const Phases&, const Take& take) const {
  std::vector<std::size_t> taken(logs_.size());
  const auto next = [&](std::size_t log) -> Result<std::optional<LogEntry>> {
    const std::size_t i = taken[log]++;
    if (i >= logs_[log].size()) return std::optional<LogEntry>();
    LogEntry entry = logs_[log][i];
    entry.event.at += shift_at(shifts_[log], {.bytes = i});
    return std::optional(std::move(entry));
  };
  return in_order(logs_.size(), next, take);
}

}  // namespace tw::monitor
