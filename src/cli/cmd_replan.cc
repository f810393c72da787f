// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "cli/commands.h"
#include "cli/plan/replan_now.h"
#include "cli/run/run_progress.h"
#include "cli/terminal/terminal.h"
#include "host/system/calendar.h"

namespace tw::cli {

ReplanAnswer replan_now(const ReplanArguments& arguments) {
  const auto text = read_text("PLAN.yaml", arguments.plan);
  if (!text) return {text.error(), kUsage};
  const auto plan = plan::read_plan(arguments.plan, text.value());
  if (!plan) return {plan.error(), kUsage};
  if (plan.value().job.empty())
    return {Error{arguments.plan + ": expected job: JOB.yaml, which tw plan writes"}, kUsage};
  const std::string file =
      (std::filesystem::path(arguments.plan).parent_path() / plan.value().job).lexically_normal().string();
  auto job = read_job_file(file);
  if (!job) return {job.error(), kUsage};
  job = with_settings(std::move(job).value(), plan.value().settings);
  auto progress = progress_in(arguments.logs, host::now_unix_s());
  if (!progress) return {progress.error(), kUsage};
  plan::note_unanswered(progress.value().zones, arguments.asked);
  const auto& peers = plan.value().peers;
  const auto known = knowledge_for(file, job.value(), arguments.sources, peers);
  if (!known) return {known.error(), kUsage};
  const auto market = market_for(known.value(), job.value(), !std::ranges::all_of(peers, plan::trains));
  if (!market) return {market.error(), kUsage};
  auto next = plan::replan({.job = job.value(),
                            .market = market.value(),
                            .plan = peers,
                            .progress = progress.value(),
                            .now_unix_s = host::now_unix_s()});
  if (!next) return {Error{file + ": " + next.error().message}, kFailed};
  return {std::move(next), kDone};
}

void describe_replan(CLI::App& app, ReplanArguments& arguments) {
  CLI::App* command = app.add_subcommand("replan", "Decide whether a run should change its machines now");
  command->add_option("PLAN.yaml", arguments.plan, "plan that the run follows, by tw plan")->required();
  command->add_option("LOGS", arguments.logs, "folder or event log of the run")->required();
  command->add_flag("--json", arguments.json, "print one JSON object instead of text");
  describe_sources(*command, arguments.sources);
  command->footer(
      "Prints keep, change, on-demand or done, and why; tw up --keep does this every 5 minutes.\n"
      "Exit codes: 0 answered, 1 no plan keeps the limits, 2 wrong usage or input.\n"
      "\nExamples:\n  tw replan PLAN.yaml tw-out");
}

int replan(const ReplanArguments& arguments) {
  const ReplanAnswer next = replan_now(arguments);
  if (!next.replan) return complain(next.replan.error().message, next.code);
  print_out("{}", arguments.json ? to_json(next.replan.value()) : to_text(next.replan.value()));
  return next.code;
}

}  // namespace tw::cli
