// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/duration.h"
#include "cli/sim/sim_sweep.h"
#include "sim/virtual/events.h"

namespace tw::cli {
namespace {

/// More are no news: they are seldom different ones.
constexpr std::size_t kFailuresInFull = 10;

std::string line(const char* name, const std::string& text) { return fmt::format("{:<15}{}\n", name, text); }

double rate(std::uint64_t events, Duration took) {
  return took > Duration{} ? static_cast<double>(events) / to_seconds(took) : 0;
}

std::vector<monitor::SimFault> coverage(const sim::Scenario& scenario, const SweepResult& tally) {
  std::vector<monitor::SimFault> rows;
  for (const sim::FaultRow& row : sim::fault_rows()) {
    const bool in_menu = std::any_of(scenario.faults.begin(), scenario.faults.end(),
                                     [&](const sim::FaultSpec& spec) { return spec.kind == row.kind; });
    const auto count = tally.faults.find(row.kind);
    if (!in_menu && count == tally.faults.end()) continue;
    const sim::FaultCount counts = count == tally.faults.end() ? sim::FaultCount{} : count->second;
    rows.push_back({std::string(row.name), counts.drawn, counts.fired});
  }
  return rows;
}

std::string faults_text(const std::vector<monitor::SimFault>& rows) {
  const auto fired =
      std::count_if(rows.begin(), rows.end(), [](const monitor::SimFault& row) { return row.fired > 0; });
  std::string text =
      line("faults", fmt::format("{} of the {} kinds of the scenario fired", fired, rows.size()));
  for (const monitor::SimFault& row : rows) {
    text += fmt::format("  {:<20}{:>9} drawn{:>9} fired{}\n", row.name, row.drawn, row.fired,
                        row.fired == 0 ? "   never" : "");
  }
  return text;
}

}  // namespace

monitor::SimResults results_of(const sim::Scenario& scenario, const SweepResult& tally, Duration took) {
  monitor::SimResults results{.seeds = tally.seeds,
                              .failures = {},
                              .events = tally.events,
                              .events_per_s = rate(tally.all_events, took),
                              .simulated_s = to_seconds(tally.simulated),
                              .faults = coverage(scenario, tally),
                              .rare = {tally.rare.begin(), tally.rare.end()},
                              .kills_by_phase = {}};
  for (const sim::SimReport& report : tally.failed) {
    for (const sim::Violation& violation : report.violations) {
      results.failures.push_back({report.seed, violation.checker, violation.message});
    }
  }
  for (const auto& [phase, count] : tally.kills_by_phase) {
    results.kills_by_phase.emplace_back(name_of(phase), count);
  }
  return results;
}

std::string render(const SweepOptions& options, const sim::Scenario& scenario, const SweepResult& tally,
                   Duration took) {
  std::string seeds = fmt::format("{}..{}", options.seeds.first, options.seeds.last);
  if (tally.seeds < options.seeds.count()) seeds = fmt::format("{} of {}", tally.seeds, seeds);
  if (options.twice) seeds += ", each run twice";
  const double per_s = rate(tally.all_events, took);
  std::string events = fmt::format("{} ({:.0f}/s", tally.events, per_s);
  if (options.jobs > 1) events += fmt::format(", {:.0f}/s a job", per_s / options.jobs);
  std::string text = line("scenario", fmt::format("{} ({})", scenario.name, options.file));
  text += line("seeds", seeds);
  text += line("failed", tally.failed.empty() ? "none" : fmt::format("{} seeds", tally.failed.size()));
  text += line("events", events + ")");
  text += line("simulated", fmt::format("{} in {}", duration_text(to_seconds(tally.simulated)),
                                        duration_text(to_seconds(took))));
  std::vector<std::string> kills;
  for (const auto& [phase, count] : tally.kills_by_phase) {
    kills.push_back(fmt::format("{} {}", name_of(phase), count));
  }
  if (!kills.empty()) {
    text += line("kills", fmt::format("in {}; of leaders {}", fmt::join(kills, ", "), tally.leader_kills));
  }
  if (tally.minority_records > 0) {
    text += line("marked", fmt::format("{} records without a majority", tally.minority_records));
  }
  text += faults_text(coverage(scenario, tally));
  if (!tally.rare.empty()) text += line("rare branches", fmt::format("{} taken", tally.rare.size()));
  for (const auto& [name, taken] : tally.rare) text += fmt::format("  {:<34}{:>10} times\n", name, taken);
  return text;
}

std::string render_failures(const std::string& file, const std::vector<sim::SimReport>& failed) {
  std::string text;
  for (const sim::SimReport& report : failed) {
    if (&report - failed.data() == kFailuresInFull) {
      text += fmt::format("... and {} more seeds: {} ...\n\n", failed.size() - kFailuresInFull, report.seed);
      break;
    }
    text += fmt::format("{}\n  again: {}\n\n", to_string(report), command_for(file, report.seed));
  }
  return text;
}

std::string progress_words(const std::string& name, const Seeds& seeds, const SweepResult& tally,
                           Duration elapsed) {
  return fmt::format("{}: {} of {} seeds, {} failed, {:.0f} events/s", name, tally.seeds, seeds.count(),
                     tally.failed.size(), rate(tally.all_events, elapsed));
}

}  // namespace tw::cli
