// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/result.h"
#include "base/text/option.h"
#include "base/text/write_file.h"
#include "cli/commands.h"
#include "cli/plan/plan_sources.h"
#include "cli/plan/price_age.h"
#include "cli/plan/run_file_notes.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/terminal.h"
#include "cli/watch/frozen_file.h"
#include "host/system/calendar.h"
#include "plan/advise/comparison.h"
#include "plan/advise/mode_plan.h"
#include "plan/output/plan_picture.h"
#include "plan/output/recommendation_text.h"

namespace tw::cli {
namespace {

Status write(const std::string& path, const std::string& text) {
  const Status written = write_file(path, text);
  return written ? written : Error{written.error().message + "; --out FOLDER takes the files elsewhere"};
}

std::string plan_file_in(const std::string& folder) {
  return (std::filesystem::path(folder) / "PLAN.yaml").lexically_normal().string();
}

Status write_files(const plan::Job& job, const plan::MarketSpace& market, const plan::Recommendation& plan,
                   const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string plan_file = plan_file_in(folder);
  if (const Status done = write(plan_file, to_plan_file(job, market, plan)); !done) return done;
  const std::string svg = to_svg(picture_of(job, plan));
  if (const Status done = write(folder + "/plan.svg", svg); !done) return done;
  return write_dated_page(folder + "/plan.html", monitor::PageKind::plan,
                          "plan: " + to_string(plan.chosen.peers), page_fields(job, plan, plan_file, svg));
}

Result<plan::Job> job_of(const PlanArguments& arguments) {
  auto job = read_job_file(arguments.job);
  if (!job || arguments.point.empty()) return job;
  TW_TRY(const auto point, parse_count("--point", arguments.point, {.least = 1, .most = plan::kFrontPoints}));
  if (job.value().goal != plan::Goal::pareto)
    return Error{"--point: expected with goal: pareto in JOB.yaml alone"};
  job.value().front_point = static_cast<int>(point);
  return job;
}

/// How many points the front of a job has, its search says.
Status has_point(const plan::Job& job, const plan::Recommendation& plan) {
  if (job.front_point <= static_cast<int>(plan.front.size())) return Unit{};
  if (plan.front.size() == 1)
    return Error{
        fmt::format("--point {}: the front has one row; expected --point 1, or none", job.front_point)};
  return Error{
      fmt::format("--point {}: expected a row of the front, 1 to {}", job.front_point, plan.front.size())};
}

Result<plan::ModePlan> plan_of(const PlanArguments& arguments, const plan::Job& job,
                               const PlanKnowledge& known) {
  const std::int64_t now_unix_s = host::now_unix_s();
  if (arguments.method.empty()) {
    ProgressLine line;
    int searches = 0;
    double before = 1;
    const plan::Knowledge knowledge = known.knowledge();
    return plan::recommend_with_mode(
        {.job = job,
         .workload = known.workload,
         .knowledge = knowledge,
         .market_of = [&](const plan::Job& one) { return market_for(known, one, false); },
         .now_unix_s = now_unix_s,
         .told =
             [&](double share) {
               if (share < before) ++searches;
               before = share;
               line.show(fmt::format("search {} for machines: {:.0f} % of its steps, at most", searches,
                                     100 * share),
                         0);
             }});
  }
  TW_TRY(const auto method, plan::parse_method(arguments.method));
  TW_TRY(auto market, market_for(known, job, true));
  TW_TRY(auto plan, plan::recommend_by(method, job, market, now_unix_s));
  return plan::ModePlan{job, std::move(market), std::move(plan)};
}

int plan_job(const PlanArguments& arguments) {
  if (!arguments.method.empty() && !plan::parse_method(arguments.method))
    return complain("--method " + plan::parse_method(arguments.method).error().message, kUsage);
  const auto job = job_of(arguments);
  if (!job) return complain(job.error().message, kUsage);
  const auto known = knowledge_for(arguments.job, job.value(), arguments.sources, {});
  if (!known) return complain(known.error().message, kUsage);
  const auto market = market_for(known.value(), job.value(), !arguments.method.empty());
  if (!market) return complain(market.error().message, kUsage);
  auto planned = plan_of(arguments, job.value(), known.value());
  if (!planned) return complain(arguments.job + ": " + planned.error().message, kFailed);
  plan::ModePlan& made = planned.value();
  if (const Status there = has_point(made.job, made.plan); !there)
    return complain(there.error().message, kUsage);
  const auto notes = run_file_notes(made.job);
  if (!notes) return complain(notes.error().message, kUsage);
  std::ranges::copy(notes.value(), std::back_inserter(made.plan.assumptions));
  if (const Status done = write_files(made.job, made.market, made.plan, arguments.out); !done)
    return complain(done.error().message, kFailed);
  const std::string plan_file = plan_file_in(arguments.out);
  print_out("{}", arguments.json ? to_json(made.job, made.plan, plan_file) : to_text(made.job, made.plan));
  if (!arguments.json)
    print_out("\n{0}{1}, {2}/plan.html and {2}/plan.svg are written; next: {3}\n",
              price_age_line(made.market, made.plan, host::now_unix_s()), plan_file, arguments.out,
              next_command(made.job, made.plan, plan_file));
  return kDone;
}

int compare_methods(const PlanArguments& arguments) {
  const auto job = job_of(arguments);
  if (!job) return complain(job.error().message, kUsage);
  const auto known = knowledge_for(arguments.job, job.value(), arguments.sources, {});
  if (!known) return complain(known.error().message, kUsage);
  const auto market = market_for(known.value(), job.value(), true);
  if (!market) return complain(market.error().message, kUsage);
  const auto rows = plan::compare(job.value(), market.value(), host::now_unix_s());
  if (!rows) return complain(arguments.job + ": " + rows.error().message, kFailed);
  if (const Status there = has_point(job.value(), rows.value().ours); !there)
    return complain(there.error().message, kUsage);
  print_out("{}", arguments.json ? to_json(job.value(), rows.value()) : to_text(job.value(), rows.value()));
  return kDone;
}

}  // namespace

void describe_plan(CLI::App& app, PlanArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("plan", "Choose machines, mode, codec and batch for a job by price and speed");
  command->add_option("JOB", arguments.job, "YAML: model, samples, goal, limits (docs/planner.md)")
      ->required();
  command->add_flag("--json", arguments.json, "print one JSON object instead of a table");
  command->add_option("--out", arguments.out, "folder for PLAN.yaml, plan.html and plan.svg")
      ->capture_default_str();
  CLI::Option* point = command->add_option(
      "--point", arguments.point,
      fmt::format("with goal: pareto: plan for this row of the front, 1 to {}", plan::kFrontPoints));
  CLI::Option* method = command
                            ->add_option("--method", arguments.method,
                                         "deepvm, spotdnn, transient, cost-first or performance-first")
                            ->excludes(point);
  command->add_flag("--compare", arguments.compare, "compare all methods with our plan; write no files")
      ->excludes(method);
  describe_sources(*command, arguments.sources);
  command->footer(
      "How a plan is found, what the methods are, when not to believe it: docs/planner.md\n"
      "The plan of a --method may miss limits of the job; then it says so.\n"
      "Exit codes: 0 planned, 1 no plan keeps the limits or a file cannot be written, 2 wrong usage or\n"
      "input.\n"
      "\nExamples:\n  tw plan examples/plan.yaml\n  tw plan examples/plan.yaml --method deepvm\n"
      "  tw plan examples/plan.yaml --compare");
}

int plan(const PlanArguments& arguments) {
  return arguments.compare ? compare_methods(arguments) : plan_job(arguments);
}

}  // namespace tw::cli
