// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "base/result.h"
#include "base/text/option.h"
#include "cli/arguments/arguments.h"
#include "cli/commands.h"
#include "cli/run/out_folder.h"
#include "cli/sim/sim_sweep.h"
#include "cli/sim/sim_trace.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/terminal.h"
#include "sim/scenarios/scenario_yaml.h"

namespace tw::cli {

namespace {

constexpr std::uint64_t kMaxJobs = 256;

volatile std::sig_atomic_t interrupts = 0;

extern "C" void on_interrupt(int signal) {
  interrupts = interrupts + 1;
  std::signal(signal, SIG_DFL);  // the second one ends the program
}

Duration real_time() {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
}

Result<SweepOptions> options_of(const SimArguments& arguments) {
  SweepOptions options{.file = arguments.scenario, .seeds = {}, .twice = !arguments.once};
  if (arguments.trace && arguments.seed.empty())
    return Error{"--trace: shows the run of one seed; add --seed N, the number of a seed that failed"};
  if (!arguments.out.empty() && !arguments.trace)
    return Error{
        fmt::format("--out {}: is for the event logs of one seed; add --seed N --trace", arguments.out)};
  if (!arguments.seed.empty() && !arguments.seeds.empty())
    return Error{fmt::format("--seed {}: one seed, and --seeds {}: many; give one of the two", arguments.seed,
                             arguments.seeds)};
  if (!arguments.seeds.empty()) {
    TW_TRY(const auto seeds, parse_seeds(arguments.seeds));
    options.seeds = {seeds.first, seeds.second};
  }
  if (!arguments.seed.empty()) {
    TW_TRY(const auto seed, parse_count("--seed", arguments.seed, {}));
    options.seeds = {seed, seed};
  }
  options.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (!arguments.jobs.empty()) {
    TW_TRY(const auto jobs, parse_count("--jobs", arguments.jobs, {.least = 1, .most = kMaxJobs}));
    options.jobs = static_cast<int>(jobs);
  }
  return options;
}

/// One seed, with all that happened in it.
int trace(const SimArguments& arguments, const SweepOptions& options, const sim::Scenario& scenario) {
  TraceLogs logs(arguments.out, scenario.sites);
  sim::Watching watching{.keep_lines = true, .on_event = {}};
  if (!arguments.out.empty()) {
    if (const Status emptied = empty_out_folder(arguments.out); !emptied)
      return complain(emptied.error().message, kUsage);
    watching.on_event = [&logs](PeerId writer, const world::Event& event) { logs.write(writer, event); };
  }
  const Duration begin = real_time();
  sim::SimReport report = run_scenario(scenario, options.seeds.first, watching);
  if (const Status written = logs.finish(); !written) return complain(written.error().message, kFailed);
  const int code = report.violations.empty() ? kDone : kFailed;
  if (arguments.json) {
    SweepResult tally;
    add(tally, std::move(report), nullptr);
    print_out("{}", to_json(results_of(scenario, tally, real_time() - begin)));
    return code;
  }
  for (const std::string& line : report.lines) print_out("{}\n", line);
  print_out("\n{}\n", to_string(report));
  if (!arguments.out.empty()) print_out("event logs: {} (tw report {})\n", arguments.out, arguments.out);
  return code;
}

/// Errors of the choice between a scenario and machines that come and go.
std::string unclear(const SimArguments& arguments) {
  const bool both = arguments.what_if.given() && !arguments.scenario.empty();
  if (both) return arguments.scenario + ": a scenario, and --trace-spot or --lifetimes; give one of them";
  if (!arguments.html.empty() && !arguments.what_if.given())
    return fmt::format("--html {}: is for --trace-spot and --lifetimes alone", arguments.html);
  const bool none = !arguments.what_if.given() && arguments.scenario.empty();
  return none ? "sim: expected SCENARIO.yaml, --trace-spot FILE or --lifetimes NAME; see tw sim --help" : "";
}

/// Options that count only beside another one.
constexpr std::pair<const char*, const char*> kPartners[] = {{"--work-h", "--policy"},
                                                             {"--deadline-h", "--policy"},
                                                             {"--on-demand-usd-per-h", "--policy"},
                                                             {"--trace-id", "--trace-spot"},
                                                             {"--from", "--trace-spot"},
                                                             {"--speed", "--trace-spot"},
                                                             {"--zones", "--lifetimes"},
                                                             {"--shocks-per-day", "--lifetimes"},
                                                             {"--shock-share", "--lifetimes"}};

/// Refuses options that nothing would read. After CLI11's excludes() and needs() the help would list all
/// pairs.
void check_partners(const CLI::App& command) {
  const auto is_given = [&](const std::string& name) { return command.get_option(name)->count() > 0; };
  const std::string scenario = "SCENARIO.yaml", group = command.get_option("--trace-spot")->get_group();
  for (const std::string source : {"--trace-spot", "--lifetimes"})
    for (const char* of_scenario : {"--seeds", "--jobs", "--once", "--trace", "--out"})
      if (is_given(source) && is_given(of_scenario)) throw CLI::ExcludesError(of_scenario, source);
  if (is_given("--model-mb") && is_given("--parameters-m"))
    throw CLI::ExcludesError("--model-mb", "--parameters-m");
  if (is_given("--trace-spot") || is_given("--lifetimes")) {
    for (const auto& [option, partner] : kPartners)
      if (is_given(option) && !is_given(partner)) throw CLI::RequiresError(option, partner);
  } else if (is_given(scenario)) {
    for (const CLI::Option* option : command.get_options())
      if (option->get_group() == group && option->count() > 0)
        throw CLI::ExcludesError(option->get_name(), scenario);
  }
}

int what_if_of_seed(const SimArguments& arguments) {
  WhatIfArguments what_if = arguments.what_if;
  if (!arguments.seed.empty()) {
    const auto seed = parse_count("--seed", arguments.seed, {});
    if (!seed) return complain(seed.error().message, kUsage);
    what_if.what.seed = seed.value();
  }
  return run_what_if(what_if, arguments.json, arguments.html);
}

}  // namespace

void describe_sim(CLI::App& app, SimArguments& arguments) {
  CLI::App* command = app.add_subcommand("sim", "Simulate runs with faults, by seed");
  command->add_option("SCENARIO.yaml", arguments.scenario, "the simulated network, machines and faults");
  command->add_option("--seeds", arguments.seeds, "A..B: one run for each seed; default: 1..100");
  command->add_option("--jobs", arguments.jobs, "seeds that run in parallel; default: the number of cores");
  command->add_flag("--once", arguments.once, "run each seed once, without comparing two histories");
  command->add_flag("--json", arguments.json, "results as JSON on stdout");
  command->add_option("--seed", arguments.seed, "run this seed only");
  command->add_flag("--trace", arguments.trace, "with --seed: print every event");
  command->add_option("--out", arguments.out, "with --trace: folder for event logs like those of a real run");
  command->add_option("--html", arguments.html, "FILE: write the what-if results as a page");
  describe_what_if(*command, arguments.what_if);
  command->parse_complete_callback([command] { check_partners(*command); });
  command->footer(
      "A seed decides everything: it gives the same run on every machine.\n"
      "Exit codes: 0 no law was violated, 1 one was, 2 wrong usage, 130 interrupted (Ctrl-C: prints what\n"
      "there is). What a scenario can contain: docs/simulation.md; examples: tests/scenarios.\n"
      "\n"
      "Examples:\n"
      "  tw sim tests/scenarios/storm.yaml\n"
      "  tw sim tests/scenarios/kills.yaml --seeds 1..10000 --jobs 2 --json | jq .failures\n"
      "  tw sim tests/scenarios/storm.yaml --seed 17 --trace --out trace && tw report trace\n"
      "  tw sim --lifetimes gcp-v100-us-central1 --peers 16 --hours 2 --usd-per-h 0.74");
}

int sim(const SimArguments& arguments) {
  if (const std::string why = unclear(arguments); !why.empty()) return complain(why, kUsage);
  if (arguments.what_if.given()) return what_if_of_seed(arguments);
  const auto options = options_of(arguments);
  if (!options) return complain(options.error().message, kUsage);
  const auto scenario = sim::read_scenario(arguments.scenario);
  if (!scenario) return complain(scenario.error().message, kUsage);
  if (arguments.trace) return trace(arguments, options.value(), scenario.value());

  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  SweepResult tally;
  Duration took{};
  {
    ProgressLine progress;
    const Seeds& seeds = options.value().seeds;
    const RunSeed run = [&](std::uint64_t seed) { return run_scenario(scenario.value(), seed); };
    tally = sweep(options.value(), run, [&](const SweepResult& so_far) {
      progress.show(progress_words(scenario.value().name, seeds, so_far, progress.elapsed()),
                    static_cast<double>(so_far.seeds) / static_cast<double>(seeds.count()));
      return interrupts == 0;
    });
    took = progress.elapsed();
  }
  if (arguments.json) {
    print_out("{}", to_json(results_of(scenario.value(), tally, took)));
  } else {
    print_out("{}{}", render_failures(arguments.scenario, tally.failed),
              render(options.value(), scenario.value(), tally, took));
  }
  if (interrupts != 0) return kInterrupted;
  return tally.failed.empty() ? kDone : kFailed;
}

}  // namespace tw::cli
