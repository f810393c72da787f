// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "monitor/report/sim_report_json.h"
#include "sim/scenarios/scenario.h"

namespace tw::cli {

struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t last = 100;

  std::uint64_t count() const { return last - first + 1; }

  bool operator==(const Seeds&) const = default;
};

struct SweepOptions {
  std::string file;  ///< of the scenario, for the command that shows a failure again
  Seeds seeds;
  int jobs = 1;
  bool twice = true;  ///< each seed, and the histories must be the same
};

/// Results of the seeds so far.
struct SweepResult {
  std::uint64_t seeds = 0;
  std::uint64_t events = 0;      ///< of each seed once
  std::uint64_t all_events = 0;  ///< of second runs, too
  Duration simulated{};
  std::map<sim::FaultKind, sim::FaultCount> faults;
  std::map<std::string, int> rare;
  std::map<world::Phase, int> kills_by_phase;
  int leader_kills = 0;
  int minority_records = 0;
  std::vector<sim::SimReport> failed;  ///< by seed
};

/// Runs one seed, or the same one again.
using RunSeed = std::function<sim::SimReport(std::uint64_t seed)>;

/// Runs all seeds, `jobs` at a time, each on a thread of its own. `look` is called a few times a second on
/// the thread of the caller; when it returns false, no further seeds are started. A broken assertion ends the
/// program, but first prints its seed.
SweepResult sweep(const SweepOptions& options, const RunSeed& run,
                  const std::function<bool(const SweepResult&)>& look);

/// Adds a seed's report; with a second run, a different history becomes a violation of the checker "replay".
void add(SweepResult& tally, sim::SimReport report, const sim::SimReport* again);

/// "tw sim tests/scenarios/storm.yaml --seed 7 --trace".
std::string command_for(const std::string& file, std::uint64_t seed);

monitor::SimResults results_of(const sim::Scenario& scenario, const SweepResult& tally, Duration took);

/// The summary for people: totals, the coverage of faults and of rare branches.
std::string render(const SweepOptions& options, const sim::Scenario& scenario, const SweepResult& tally,
                   Duration took);

/// The failures for people, each with the command that reproduces it; after some of them, only the number of
/// the rest.
std::string render_failures(const std::string& file, const std::vector<sim::SimReport>& failed);

/// "storm: 123 of 1000 seeds, 2 failed, 512000 events/s".
std::string progress_words(const std::string& name, const Seeds& seeds, const SweepResult& tally,
                           Duration elapsed);

}  // namespace tw::cli
