// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "base/result.h"
#include "base/text/number.h"
#include "base/text/option.h"
#include "base/text/write_file.h"
#include "cli/commands.h"
#include "cli/plan/price_sources.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/terminal.h"
#include "launch/policy_program.h"
#include "plan/output/replay_table.h"

namespace tw::cli {
namespace {

Result<double> number(const std::string& option, const std::string& text, double least) {
  const auto value = parse_number<double>(text);
  constexpr double kMost = 1e6;
  const bool above = least == 0 && option.ends_with("-usd-h");
  if (value && *value >= least && *value <= kMost && !(above && *value == 0)) return *value;
  if (above) return Error{fmt::format("{} {}: expected a price above 0, up to {:.15g}", option, text, kMost)};
  return Error{fmt::format("{} {}: expected a number from {:g} to {:.15g}", option, text, least, kMost)};
}

Result<plan::ReplayTask> task_of(const ReplayArguments& arguments) {
  plan::ReplayTask task{.only = arguments.only, .market = arguments.zones};

  const struct {
    const char* option;
    const std::string& text;
    double least;
    double unit;
    double& value;
  } kNumbers[] = {{"--work-h", arguments.work_h, 0.01, 3600, task.job.work_s},
                  {"--deadline-h", arguments.deadline_h, 0.01, 3600, task.job.deadline_s},
                  {"--change-over-s", arguments.change_over_s, 0, 1, task.job.change_over_s},
                  {"--spot-usd-h", arguments.spot_usd_h, 0, 1, task.job.spot_usd_h},
                  {"--on-demand-usd-h", arguments.on_demand_usd_h, 0, 1, task.job.on_demand_usd_h},
                  {"--move-usd", arguments.move_usd, 0, 1, task.job.move_usd},
                  {"--every-h", arguments.every_h, 0.1, 3600, task.every_s}};

  for (const auto& [option, text, least, unit, value] : kNumbers) {
    TW_TRY(const auto read, number(option, text, least));
    value = read * unit;
  }
  task.job.machines = 0;
  if (!arguments.machines.empty()) {
    TW_TRY(const auto machines,
           parse_count("--machines", arguments.machines, {.least = 1, .most = plan::kMostReplayMachines}));
    task.job.machines = static_cast<int>(machines);
  }
  return task;
}

Result<std::optional<launch::PolicyProgram>> own_policy(const std::string& command) {
  TW_TRY(auto program, launch::PolicyProgram::start(command));
  return std::optional<launch::PolicyProgram>(std::move(program));
}

Result<plan::ReplayTable> replay_with_progress(const plan::ReplayTask& task,
                                               const std::vector<plan::AvailabilityTrace>& traces,
                                               const std::optional<launch::PolicyProgram>& own) {
  ProgressLine line;
  return replay_table(task, traces, [&](double share) {
    line.show(fmt::format("{:.0f} % of the starts are played", 100 * share), share);
    return !own || !own->trouble();
  });
}

}  // namespace

void describe_replay(CLI::App& app, ReplayArguments& arguments) {
  CLI::App* command = app.add_subcommand("replay", "Compare spot policies on a trace of availability");
  command
      ->add_option("TRACE.csv", arguments.trace,
                   "CSV with the columns [trace_id,]t_seconds,available[,spot_usd_h]")
      ->required();
  command->add_option("--trace", arguments.only, "only this trace_id");
  const auto add = [&](const char* name, std::string& value, const char* text) {
    command->add_option(name, value, text)->capture_default_str();
  };
  command->add_option("--zones", arguments.zones, "traces whose trace_id begins so are zones of one market");
  command->add_option("--policy", arguments.policy, "your own policy: a command that answers on stdout");
  command->add_option("--chart", arguments.chart, "write a picture of cost over the optimum: FILE.svg");
  add("--work-h", arguments.work_h, "hours that all machines work");
  add("--deadline-h", arguments.deadline_h, "hours until the job must be done");
  add("--change-over-s", arguments.change_over_s, "seconds from a decision to work, lost work included");
  add("--machines", arguments.machines, "number of machines, to 256; default: the most of the trace");
  add("--spot-usd-h", arguments.spot_usd_h, "price of a spot machine");
  add("--on-demand-usd-h", arguments.on_demand_usd_h, "price of an on-demand machine");
  add("--move-usd", arguments.move_usd, "price of a move to another zone: egress of the state");
  add("--every-h", arguments.every_h, "hours between two starts of the job along the trace");
  command->add_flag("--json", arguments.json, "print one JSON object instead of a table");
  command->footer(
      "Simulates a job with a deadline under each policy; live is what tw replan and tw up --keep follow\n"
      "(docs/planner.md).\n"
      "\nExamples:\n  tw replay availability.csv --work-h 24 --deadline-h 30\n"
      "  tw replay availability.csv --zones cbl-availability-1n-20230215 --policy ./mine.py");
}

int replay(const ReplayArguments& arguments) {
  const auto task = task_of(arguments);
  if (!task) return complain(task.error().message, kUsage);
  const auto text = read_text("TRACE.csv", arguments.trace);
  if (!text) return complain(text.error().message, kUsage);
  const auto traces = plan::read_availability(arguments.trace, text.value());
  if (!traces) return complain(traces.error().message, kUsage);
  auto own = arguments.policy.empty() ? Result<std::optional<launch::PolicyProgram>>(std::nullopt)
                                      : own_policy(arguments.policy);
  if (!own) return complain("--policy " + own.error().message, kUsage);
  plan::ReplayTask with_own = task.value();
  if (own.value()) with_own.own = &*own.value();
  const auto table = replay_with_progress(with_own, traces.value(), own.value());
  if (own.value() && own.value()->trouble())
    return complain("--policy " + own.value()->trouble()->message, kFailed);
  if (!table) return complain(table.error().message, kUsage);
  if (!arguments.chart.empty())
    if (const Status written = write_file(arguments.chart, to_svg(table.value())); !written)
      return complain(written.error().message, kFailed);
  print_out("{}", arguments.json ? to_json(table.value()) : to_text(table.value()));
  return kDone;
}

}  // namespace tw::cli
