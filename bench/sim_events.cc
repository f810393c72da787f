// SPDX-License-Identifier: Apache-2.0
//
// Events per second of the simulator: runs of one seed after the other, on one core.
//   bench_sim_events [--peers N] [--seconds N]

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "measure.h"
#include "sim/scenarios/scenario.h"

int main(int argc, char** argv) {
  CLI::App app("Events per second of the simulator");
  int peers = 16;
  double limit_s = 10;
  app.add_option("--peers", peers, "at the start of each run")->capture_default_str();
  app.add_option("--seconds", limit_s, "after which no further run begins")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  tw::sim::Scenario scenario;
  scenario.sites.front().peers = peers;
  scenario.most_peers = 2 * peers;
  scenario.workload.microbatches = tw::sim::Between(4.0 * peers, 4.0 * peers);
  scenario.faults = {{.kind = tw::sim::FaultKind::kill, .chance = 1, .least = 1, .most = 4},
                     {.kind = tw::sim::FaultKind::join, .chance = 1, .least = 1, .most = 4}};

  const double begin = tw::bench::wall_seconds();
  const double cpu_begin = tw::host::cpu_seconds();
  std::uint64_t seeds = 0;
  std::uint64_t events = 0;
  std::uint64_t rounds = 0;
  double simulated_s = 0;
  while (tw::bench::wall_seconds() - begin < limit_s) {
    const tw::sim::SimReport report = tw::sim::run_scenario(scenario, ++seeds);
    if (!report.violations.empty()) {
      fmt::print(stderr, "{}\n", tw::sim::to_string(report));
      return 1;
    }
    events += report.events;
    rounds += report.rounds;
    simulated_s += tw::to_seconds(report.simulated);
  }
  const double wall = tw::bench::wall_seconds() - begin;
  const double cpu = tw::host::cpu_seconds() - cpu_begin;
  fmt::print(R"({{"peers": {}, "runs": {}, "rounds": {}, "events": {}, "wall_s": {:.2f}, "cpu_s": {:.2f}, )"
             R"("events_per_wall_s": {:.0f}, "events_per_cpu_s": {:.0f}, "simulated_s_per_wall_s": {:.1f}}})"
             "\n",
             peers, seeds, rounds, events, wall, cpu, static_cast<double>(events) / wall,
             static_cast<double>(events) / cpu, simulated_s / wall);
  return 0;
}
