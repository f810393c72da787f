// SPDX-License-Identifier: Apache-2.0
// Whether the simulator's seeds break no law, and still have the histories that were frozen
// (CONTRIBUTING.md); built with the tests, run by ctest. With --freeze it writes the file instead.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "sim/scenarios/scenario_yaml.h"

namespace {

constexpr std::size_t kShown = 10;  ///< changed seeds of a scenario that are named

struct Options {
  std::string file;
  bool freeze = false;
  std::string storm = "1..300";
  std::string others = "1..20";
  std::vector<std::string> only;
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
};

/// What a seed came to.
struct Outcome {
  std::string history;  ///< digest
  std::uint64_t events = 0;

  bool operator==(const Outcome&) const = default;
};

struct SeedRun {
  std::string scenario;
  std::uint64_t seed = 0;
  Outcome frozen;
  Outcome now;
  std::string broken;  ///< the report, where a law is broken
};

std::filesystem::path scenario_file(const std::string& name) {
  return std::filesystem::path(TW_SOURCE_DIR) / "tests/scenarios" / (name + ".yaml");
}

std::vector<std::string> all_scenarios() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(scenario_file("storm").parent_path()))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

void add_range(std::vector<SeedRun>& runs, const std::string& scenario, const std::string& range) {
  std::istringstream text(range);
  std::uint64_t first = 0, last = 0;
  char dot = 0, dot_too = 0;
  const bool read = text >> first >> dot >> dot_too >> last && dot == '.' && dot_too == '.' && text.eof();
  if (!read || first > last) throw CLI::ValidationError(range + ": expected seeds as 1..300");
  for (std::uint64_t seed = first; seed <= last; ++seed) runs.push_back({scenario, seed, {}, {}, {}});
}

std::vector<SeedRun> runs_to_freeze(const Options& options) {
  std::vector<SeedRun> runs;
  for (const std::string& name : all_scenarios())
    add_range(runs, name, name == "storm" ? options.storm : options.others);
  return runs;
}

std::vector<SeedRun> read_frozen(const std::string& path) {
  std::ifstream file(path);
  std::vector<SeedRun> runs;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    SeedRun run;
    if (!(words >> run.scenario >> run.seed >> run.frozen.history >> run.frozen.events))
      throw CLI::ValidationError(path + ": expected SCENARIO SEED DIGEST EVENTS: " + line);
    runs.push_back(run);
  }
  if (runs.empty()) throw CLI::ValidationError(path + ": holds no histories; make histories writes them");
  return runs;
}

void run_all(std::vector<SeedRun>& runs, unsigned jobs) {
  std::map<std::string, tw::sim::Scenario> scenarios;
  for (const SeedRun& run : runs) {
    if (scenarios.contains(run.scenario)) continue;
    const auto scenario = tw::sim::read_scenario(scenario_file(run.scenario).string());
    if (!scenario) throw CLI::ValidationError(scenario.error().message);
    scenarios[run.scenario] = scenario.value();
  }
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < jobs; ++i) {
    threads.emplace_back([&] {
      for (std::size_t place = next++; place < runs.size(); place = next++) {
        SeedRun& run = runs[place];
        const tw::sim::SimReport report = tw::sim::run_scenario(scenarios.at(run.scenario), run.seed);
        run.now = {to_string(report.history), report.events};
        if (!report.violations.empty()) run.broken = to_string(report);
      }
    });
  }
}

/// Prints the seeds that break a law; returns how many.
std::size_t tell_broken(const std::vector<SeedRun>& runs) {
  std::size_t all = 0;
  for (const SeedRun& run : runs) {
    if (run.broken.empty()) continue;
    if (++all <= kShown)
      fmt::print("{}\n  again: tw sim tests/scenarios/{}.yaml --seed {} --trace\n", run.broken, run.scenario,
                 run.seed);
  }
  if (all > 0) fmt::print("{} seeds break a law\n", all);
  return all;
}

int freeze(const Options& options) {
  std::vector<SeedRun> runs = runs_to_freeze(options);
  run_all(runs, options.jobs);
  std::string text =
      "# SPDX-License-Identifier: Apache-2.0\n"
      "# Digest of the history, and number of events, of seeds of each scenario. Written by make histories;\n"
      "# CONTRIBUTING.md says when.\n";
  for (const SeedRun& run : runs)
    text += fmt::format("{} {} {} {}\n", run.scenario, run.seed, run.now.history, run.now.events);
  std::ofstream file(options.file, std::ios::trunc);
  file << text << std::flush;
  if (!file) throw CLI::ValidationError(options.file + ": cannot be written");
  fmt::print("{}: {} histories\n", options.file, runs.size());
  return tell_broken(runs) == 0 ? 0 : 1;
}

/// Prints what changed; returns how many seeds.
std::size_t tell_changes(const std::vector<SeedRun>& runs) {
  std::map<std::string, std::size_t> changed;
  std::size_t all = 0;
  for (const SeedRun& run : runs) {
    if (run.now == run.frozen) continue;
    ++all;
    if (++changed[run.scenario] > kShown) continue;
    fmt::print("{} {}: history {} after {} events, frozen {} after {}\n", run.scenario, run.seed,
               run.now.history, run.now.events, run.frozen.history, run.frozen.events);
    fmt::print("  see it: tw sim tests/scenarios/{}.yaml --seed {} --trace\n", run.scenario, run.seed);
  }
  for (const auto& [name, count] : changed) fmt::print("{}: {} seeds have another history\n", name, count);
  return all;
}

int compare(const Options& options) {
  std::vector<SeedRun> runs = read_frozen(options.file);
  std::size_t missing = 0;
  for (const std::string& name : all_scenarios()) {
    if (std::ranges::any_of(runs, [&](const SeedRun& run) { return run.scenario == name; })) continue;
    fmt::print("{}: no history of this scenario is frozen\n", name);
    ++missing;
  }
  if (!options.only.empty()) {
    std::erase_if(runs, [&](const SeedRun& run) {
      return std::ranges::find(options.only, run.scenario) == options.only.end();
    });
  }
  run_all(runs, options.jobs);
  const std::size_t broken = tell_broken(runs);
  const std::size_t changed = tell_changes(runs);
  fmt::print("{} of {} histories are as they were frozen\n", runs.size() - changed, runs.size());
  if (changed + missing == 0) return broken == 0 ? 0 : 1;
  fmt::print(
      "A change that only moves code changes none. One that must: say why in its commit, and freeze them "
      "anew with: make histories\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Compares histories of the simulator's seeds with those that were frozen"};
  app.add_option("FILE", options.file, "the frozen histories")->required();
  app.add_flag("--freeze", options.freeze, "write FILE instead of comparing");
  app.add_option("--storm", options.storm, "with --freeze: seeds of the storm")->capture_default_str();
  app.add_option("--others", options.others, "with --freeze: seeds of each other scenario")
      ->capture_default_str();
  app.add_option("--only", options.only, "compare only these scenarios");
  app.add_option("--jobs", options.jobs, "seeds at a time")->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
    return options.freeze ? freeze(options) : compare(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
}
