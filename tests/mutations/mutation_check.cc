// SPDX-License-Identifier: Apache-2.0
// Whether each bug of mutations.txt is seen, by the simulator, the explorer or the unit test that the list
// names; built and run by `make mutants`. A law that a
// scenario breaks without any bug counts only where it is broken much sooner, and a seed that breaks one
// never. With --sample, only the bugs of a file, each with its own number of seeds.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "mutations/trial.h"

namespace {

using tw::Bug;
using tw::Finding;
using tw::Outcome;
using tw::Trial;

struct Options {
  std::vector<std::string> only;
  std::string scenario;  ///< instead of the bugs' own
  std::string sample;    ///< file: a bug's name and its number of seeds on each line
  std::uint64_t seeds = 5000;
  std::uint64_t clean_seeds = 1000;
  unsigned jobs = 2;
  bool json = false;
  bool verbose = false;
};

std::vector<Bug> all_bugs() {
  return {
#include "bugs.inc"
  };
}

std::vector<Bug> chosen(const std::vector<std::string>& only, const std::string& scenario) {
  std::vector<Bug> bugs = all_bugs();
  for (Bug& bug : bugs) {
    if (!scenario.empty()) bug.scenario = scenario;
  }
  for (const std::string& name : only) {
    const auto named = [&](const Bug& bug) { return bug.name == name; };
    if (std::none_of(bugs.begin(), bugs.end(), named)) throw CLI::ValidationError("no bug is called " + name);
  }
  std::erase_if(bugs, [&](const Bug& bug) {
    return !only.empty() && std::find(only.begin(), only.end(), bug.name) == only.end();
  });
  return bugs;
}

/// By bug: within how many seeds it must be found.
using Limits = std::map<std::string, std::uint64_t>;

Limits read_sample(const std::string& path) {
  std::ifstream file(path);
  Limits limits;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t seeds = 0;
    if (!(words >> name) || name.starts_with("#")) continue;
    if (!(words >> seeds) || seeds == 0) throw CLI::ValidationError(path + ": expected NAME SEEDS: " + line);
    limits[name] = seeds;
  }
  if (limits.empty()) throw CLI::ValidationError(path + " names no bug");
  return limits;
}

/// Those that no scenario shows, by the list's own word: printed, not tried.
std::vector<Bug> take_unseen(std::vector<Bug>& bugs) {
  const auto seen = [](const Bug& bug) { return bug.scenario != "unseen"; };
  const auto first = std::stable_partition(bugs.begin(), bugs.end(), seen);
  std::vector<Bug> unseen(first, bugs.end());
  bugs.erase(first, bugs.end());
  return unseen;
}

/// By scenario: the share of its seeds that break a law without any bug.
using Noise = std::map<std::string, std::map<std::string, double>>;

/// At most `jobs` at a time; tells of each as it ends.
void run_all(const std::vector<Bug>& bugs, const std::function<std::uint64_t(const Bug&)>& seeds,
             unsigned jobs, Noise noise, const std::function<void(const Finding&)>& tell) {
  std::deque<Bug> waiting(bugs.begin(), bugs.end());
  std::vector<std::unique_ptr<Trial>> running;
  while (!waiting.empty() || !running.empty()) {
    while (!waiting.empty() && running.size() < jobs) {
      const Bug& next = waiting.front();
      running.push_back(std::make_unique<Trial>(next, seeds(next), noise[next.scenario]));
      waiting.pop_front();
    }
    std::vector<pollfd> wanted;
    for (const auto& trial : running) wanted.push_back({trial->descriptor(), POLLIN, 0});
    poll(wanted.data(), wanted.size(), -1);
    for (std::size_t i = wanted.size(); i-- > 0;) {
      if (wanted[i].revents == 0 || running[i]->read()) continue;
      tell(running[i]->finding());
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

const char* word(Outcome outcome) {
  switch (outcome) {
    case Outcome::survived:
      return "SURVIVED";
    case Outcome::found:
      return "found";
    case Outcome::crashed:
      return "CRASHED";
  }
  return "?";
}

void print(const Finding& finding, bool verbose) {
  const std::string seen_by = finding.outcome == Outcome::found ? finding.checker : word(finding.outcome);
  fmt::print("{:44} {:10} {:6} {:9} {:7.1f}\n", finding.bug.name, finding.bug.scenario, finding.seeds,
             seen_by, finding.cpu_s);
  if (verbose || finding.outcome == Outcome::crashed) {
    fmt::print("    {}\n    {}\n", finding.bug.text, finding.message);
  }
  std::fflush(stdout);
}

nlohmann::json row(const Finding& finding) {
  return {{"bug", finding.bug.name},          {"what", finding.bug.text}, {"scenario", finding.bug.scenario},
          {"outcome", word(finding.outcome)}, {"seeds", finding.seeds},   {"checker", finding.checker},
          {"message", finding.message},       {"cpu_s", finding.cpu_s}};
}

Noise noise_of(const std::vector<Bug>& bugs, const Options& options) {
  std::set<std::string> scenarios;
  for (const Bug& bug : bugs) {
    if (bug.scenario != tw::kExplorer && bug.scenario != tw::kUnit)
      scenarios.insert(bug.scenario);  // it breaks no law by itself
  }
  std::vector<Bug> none;
  for (const std::string& scenario : scenarios)
    none.push_back({0, "(no bug)", scenario, {}, "nothing is planted"});
  Noise noise;
  const auto clean_seeds = [&](const Bug&) { return options.clean_seeds; };
  run_all(none, clean_seeds, options.jobs, {}, [&](const Finding& finding) {
    for (const auto& [law, seeds] : finding.broken) {
      noise[finding.bug.scenario][law] =
          static_cast<double>(seeds) / static_cast<double>(options.clean_seeds);
    }
    if (options.json || finding.broken.empty()) return;
    fmt::print("{} without a bug, seeds of {} that break a law: {}\n", finding.bug.scenario,
               options.clean_seeds, finding.broken);
    std::fflush(stdout);
  });
  return noise;
}

int check(Options options) {
  Limits limits;
  if (!options.sample.empty()) limits = read_sample(options.sample);
  for (const auto& [name, seeds] : limits) options.only.push_back(name);
  const auto seeds_of = [&](const Bug& bug) {
    return limits.contains(bug.name) ? limits.at(bug.name) : options.seeds;
  };
  std::vector<Bug> bugs = chosen(options.only, options.scenario);
  const std::vector<Bug> unseen = take_unseen(bugs);
  const Noise noise = noise_of(bugs, options);
  if (!options.json)
    fmt::print("{:44} {:10} {:>6} {:9} {:>7}\n", "bug", "scenario", "seeds", "seen by", "cpu_s");
  nlohmann::json rows = nlohmann::json::array();
  std::size_t found = 0;
  run_all(bugs, seeds_of, options.jobs, noise, [&](const Finding& finding) {
    found += finding.outcome == Outcome::found ? 1 : 0;
    rows.push_back(row(finding));
    if (!options.json) print(finding, options.verbose);
  });
  if (options.json) {
    std::cout << rows.dump(2) << "\n";
  } else {
    for (const Bug& bug : unseen) fmt::print("{:44} not tried: {}\n", bug.name, bug.text);
    const std::string limit = limits.empty() ? fmt::format("{}", options.seeds) : "their numbers of";
    fmt::print("{} of {} planted bugs found within {} seeds\n", found, bugs.size(), limit);
  }
  return found == bugs.size() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Plants each bug of mutations.txt in the protocol and runs seeds until a checker sees it"};
  app.add_option("--only", options.only, "bugs, by name");
  app.add_option("--scenario", options.scenario,
                 "of tests/scenarios, or explorer, instead of those that the list names");
  app.add_option("--sample", options.sample, "file: the bugs to try, each with its number of seeds");
  app.add_option("--seeds", options.seeds, "each bug must be found within so many")->capture_default_str();
  app.add_option("--clean-seeds", options.clean_seeds, "first, without any bug")->capture_default_str();
  app.add_option("--jobs", options.jobs, "processes at a time")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("--json", options.json);
  app.add_flag("--verbose,-v", options.verbose, "what each bug is, and what the checker said");
  try {
    app.parse(argc, argv);
    return check(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
}
