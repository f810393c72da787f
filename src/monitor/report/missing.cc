// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/missing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/peer_name.h"

namespace tw::monitor {

void LogGaps::take(const LogEntry& entry) {
  const std::int64_t before_unix_nanos = seen_ > 0 ? last_unix_nanos_ : entry.unix_nanos;
  const std::uint64_t seen = seen_++;
  last_unix_nanos_ = entry.unix_nanos;
  const auto* told = entry.event.as<event::Log>();
  if (told == nullptr) return;
  MissingEvents gap{.peer = entry.writer,
                    .events = told->missing,
                    .from_unix_nanos = entry.unix_nanos,
                    .to_unix_nanos = entry.unix_nanos,
                    .why = entry.event.why};
  if (gap.events) {
    const double seconds = told->seconds.value_or(0);
    if (seconds > 0 && seconds < 1e9) gap.from_unix_nanos -= from_seconds(seconds).count();
    found_.push_back(std::move(gap));
    return;
  }
  if (!told->logged) return;
  if (*told->logged > seen) {
    gap.events = *told->logged - seen;
    gap.why = "files of its log that were removed for newer ones, or are not in this folder";
    gap.from_unix_nanos = before_unix_nanos;
    found_.push_back(std::move(gap));
  }
  seen_ = *told->logged + 1;
}

void UnloggedRounds::take_own(const LogEntry& entry, bool dropped) {
  Peer& peer = peers_[entry.writer];
  peer.has_log = true;
  const world::Event& event = entry.event;
  const bool begins = event.as<event::Start>() || event.as<event::Restore>() || event.as<event::Log>();
  if (begins || dropped) peer.goes_on = false;
  if (event.phase() != world::Phase::commit || dropped) return;
  if (peer.goes_on && event.round > peer.last + 1)
    peer.passed.add(Range{peer.last + 1, event.round - peer.last - 1});
  peer.last = event.round;
  peer.goes_on = true;
}

void UnloggedRounds::take(const LogEntry& entry, bool dropped) {
  if (entry.writer != PeerId{}) take_own(entry, dropped);
  const auto* commit = entry.event.as<event::Commit>();
  if (commit == nullptr) return;
  if (!dropped) committed_unix_nanos_.try_emplace(entry.event.round, entry.unix_nanos);
  for (const PeerId id : commit->peers) {
    Peer& peer = peers_[id];
    if (peer.from_unix_nanos == 0) peer.from_unix_nanos = peer.to_unix_nanos = entry.unix_nanos;
    peer.from_unix_nanos = std::min(peer.from_unix_nanos, entry.unix_nanos);
    peer.to_unix_nanos = std::max(peer.to_unix_nanos, entry.unix_nanos);
    if (!dropped) peer.contributed.add(Range{entry.event.round, 1});
  }
}

MissingEvents UnloggedRounds::no_log(PeerId id, const Peer& peer) const {
  return {.peer = id,
          .events = {},
          .from_unix_nanos = peer.from_unix_nanos,
          .to_unix_nanos = peer.to_unix_nanos,
          .why = std::string(kNoLog)};
}

MissingEvents UnloggedRounds::no_commits(PeerId id, const RangeSet& rounds) const {
  const Round first = rounds.ranges().front().first, last = rounds.ranges().back().end() - 1;
  const std::string which = first == last ? fmt::format("round {}", first)
                            : rounds.ranges().size() == 1
                                ? fmt::format("rounds {} to {}", first, last)
                                : fmt::format("{} rounds from {} to {}", rounds.count(), first, last);
  return {.peer = id,
          .events = {},
          .from_unix_nanos = committed_unix_nanos_.at(first),
          .to_unix_nanos = committed_unix_nanos_.at(last),
          .why = fmt::format("its log has no commit of {}, to which it contributed", which)};
}

std::vector<MissingEvents> UnloggedRounds::found() const {
  std::vector<MissingEvents> found;
  for (const auto& [id, peer] : peers_) {
    if (peer.contributed.empty() && peer.from_unix_nanos == 0) continue;
    if (!peer.has_log) {
      found.push_back(no_log(id, peer));
      continue;
    }
    RangeSet logged = peer.contributed, missing = peer.contributed;
    logged.remove(peer.passed);
    missing.remove(logged);
    if (!missing.empty()) found.push_back(no_commits(id, missing));
  }
  return found;
}

std::string to_string(const MissingEvents& missing) {
  const std::string events = missing.events ? fmt::format("{} events", *missing.events) : "events";
  const std::string from = calendar_time(missing.from_unix_nanos);
  const std::string when = missing.to_unix_nanos
                               ? fmt::format("between {} and {}", from, calendar_time(*missing.to_unix_nanos))
                               : "after " + from;
  return fmt::format("peer {}: {} {} ({})", peer_name(missing.peer), events, when, missing.why);
}

}  // namespace tw::monitor
