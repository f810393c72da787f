// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "monitor/fold/journal.h"
#include "monitor/report/report.h"

namespace tw::monitor {

inline constexpr std::int64_t kEpochNanos = 1'767'225'600'000'000'000;

/// Writes the logs of a run by hand, in seconds.
class Story {
 public:
  void add(std::uint64_t writer, double t, world::Event event) {
    event.at = Instant(from_seconds(t));
    logs_[writer].push_back({.writer = PeerId{writer},
                             .unix_nanos = kEpochNanos + event.at.time_since_epoch().count(),
                             .event = std::move(event)});
  }

  /// A round in which every peer contributes 32 samples; it begins at t and is applied after `takes` seconds.
  void round(Round number, double t, double takes, const std::vector<std::uint64_t>& peers) {
    samples_total_ += 32 * peers.size();
    for (const std::uint64_t peer : peers) {
      const double late = peer == peers.front() ? 0 : 0.001;  // the leader knows first
      add(peer, t + late, {.round = number, .fact = event::Accumulate{}});
      if (peer == peers.front()) add(peer, t, {.round = number, .fact = event::Lead{}});
      add(peer, t + takes * 0.8 + late, {.round = number, .fact = event::Call{.calc_s = takes * 0.8}});
      add(peer, t + takes + late,
          {.round = number,
           .fact = event::Commit{.samples = 32,
                                 .samples_total = samples_total_,
                                 .calc_s = takes * 0.8,
                                 .comm_s = takes * 0.2}});
      apply(peer, t + takes + late, number, "digest-" + std::to_string(number));
    }
  }

  void apply(std::uint64_t peer, double t, Round number, const std::string& digest) {
    add(peer, t, {.round = number, .fact = event::Apply{.digest = digest}});
  }

  /// Rounds [first, last] of a second each; round r begins at second r.
  void rounds(Round first, Round last, const std::vector<std::uint64_t>& peers) {
    for (Round number = first; number <= last; ++number) round(number, static_cast<double>(number), 1, peers);
  }

  /// Each in the order of time, as a process writes it.
  std::vector<std::vector<LogEntry>> logs() const {
    std::vector<std::vector<LogEntry>> all;
    for (const auto& [writer, log] : logs_) {
      all.push_back(log);
      std::ranges::stable_sort(all.back(), {}, [](const LogEntry& entry) { return entry.event.at; });
    }
    return all;
  }

  Summary summary() const { return summarize(logs()); }

 private:
  std::map<std::uint64_t, std::vector<LogEntry>> logs_;
  std::uint64_t samples_total_ = 0;
};

}  // namespace tw::monitor
