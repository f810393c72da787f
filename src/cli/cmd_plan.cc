// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/text/write_file.h"
#include "cli/commands.h"
#include "cli/plan/own_lives.h"
#include "cli/plan/plan_replay.h"
#include "cli/plan/price_age.h"
#include "cli/plan/replan_now.h"
#include "cli/run/run_progress.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/terminal.h"
#include "cli/watch/frozen_file.h"
#include "host/system/calendar.h"
#include "plan/advise/comparison.h"
#include "plan/advise/replan.h"
#include "plan/output/plan_picture.h"
#include "plan/output/recommendation_text.h"

namespace tw::cli {
namespace {

Status write(const std::string& path, const std::string& text) {
  const Status written = write_file(path, text);
  return written ? written : Error{written.error().message + "; --out FOLDER takes the files elsewhere"};
}

Status write_files(const plan::Job& job, const plan::MarketSpace& market, const plan::Recommendation& plan,
                   const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (const Status done = write(folder + "/PLAN.yaml", to_plan_file(job, market, plan)); !done) return done;
  if (const Status done = write(folder + "/plan.svg", to_svg(picture_of(plan))); !done) return done;
  return write_dated_page(folder + "/plan.html", monitor::PageKind::plan,
                          "plan: " + to_string(plan.chosen.peers),
                          fmt::format("\"plan\":{}", to_json(job, plan)));
}

Result<plan::Job> job_of(const PlanArguments& arguments) {
  const auto text = read_text("JOB", arguments.job);
  if (!text) return text.error();
  auto job = plan::read_job(arguments.job, text.value());
  if (!job) return job.error();
  if (arguments.point > 0 && job.value().goal != plan::Goal::pareto)
    return Error{"--point: expected with goal: pareto in JOB.yaml alone"};
  job.value().front_point = arguments.point;
  const std::filesystem::path file = std::filesystem::absolute(arguments.job).lexically_normal();
  job.value().file = file.string();
  if (!job.value().run.empty())
    job.value().run = (file.parent_path() / job.value().run).lexically_normal().string();
  return job;
}

/// With the machines of the plan that is followed, if one is.
Result<plan::MarketSpace> market_of(const PlanArguments& arguments, const plan::Job& job,
                                    const std::vector<plan::PlannedGroup>& plan) {
  const auto workload = workload_of(job, arguments.job);
  if (!workload) return workload.error();
  const auto at_hand = price_sources(arguments.market);
  if (!at_hand) return at_hand.error();
  const auto network = network_at_hand(arguments.profile);
  if (!network) return network.error();
  std::vector<market::Offer> offers = at_hand.value().offers;
  for (market::Offer& gone : offers_of(plan, offers)) offers.push_back(std::move(gone));
  std::vector<market::Lived> seen;
  for (const std::string& folder : arguments.learn) {
    const auto lives = lives_in(folder);
    if (!lives) return lives.error();
    seen.insert(seen.end(), lives.value().begin(), lives.value().end());
  }
  const plan::Knowledge knowledge{.network = network.value()};
  auto market = plan::market_space({.job = job,
                                    .workload = workload.value(),
                                    .offers = offers,
                                    .knowledge = knowledge,
                                    .tariffs = market::Tariffs::built_in(),
                                    .seen = std::move(seen),
                                    .idle_anchors = arguments.compare || !arguments.method.empty() ||
                                                    !std::all_of(plan.begin(), plan.end(), plan::trains)});
  if (!market) return Error{arguments.job + ": " + market.error().message};
  return market;
}

Result<plan::Recommendation> plan_of(const PlanArguments& arguments, const plan::Job& job,
                                     const plan::MarketSpace& market) {
  if (arguments.method.empty()) {
    ProgressLine line;
    int searches = 0;
    double before = 1;
    return recommend(job, market, host::now_unix_s(), [&](double share) {
      if (share < before) ++searches;
      before = share;
      line.show(fmt::format("search {} for machines: {:.0f} % of its steps, at most", searches, 100 * share),
                0);
    });
  }
  const auto method = plan::parse_method(arguments.method);
  if (!method) return method.error();
  return plan::recommend_by(method.value(), job, market, host::now_unix_s());
}

int plan_job(const PlanArguments& arguments) {
  if (!arguments.method.empty() && !plan::parse_method(arguments.method))
    return complain("--method " + plan::parse_method(arguments.method).error().message, kUsage);
  const auto job = job_of(arguments);
  if (!job) return complain(job.error().message, kUsage);
  const auto market = market_of(arguments, job.value(), {});
  if (!market) return complain(market.error().message, kUsage);
  const auto plan = plan_of(arguments, job.value(), market.value());
  if (!plan) return complain(arguments.job + ": " + plan.error().message, kFailed);
  if (const Status done = write_files(job.value(), market.value(), plan.value(), arguments.out); !done)
    return complain(done.error().message, kFailed);
  print_out("{}", arguments.json ? to_json(job.value(), plan.value()) : to_text(job.value(), plan.value()));
  if (!arguments.json)
    print_out("\n{0}{1}/PLAN.yaml, {1}/plan.html and {1}/plan.svg are written\n",
              price_age_line(market.value(), plan.value(), host::now_unix_s()), arguments.out);
  return kDone;
}

int compare_methods(const PlanArguments& arguments) {
  const auto job = job_of(arguments);
  if (!job) return complain(job.error().message, kUsage);
  const auto market = market_of(arguments, job.value(), {});
  if (!market) return complain(market.error().message, kUsage);
  const auto rows = plan::compare(job.value(), market.value(), host::now_unix_s());
  if (!rows) return complain(arguments.job + ": " + rows.error().message, kFailed);
  print_out("{}", arguments.json ? to_json(job.value(), rows.value()) : to_text(job.value(), rows.value()));
  return kDone;
}

int replan_job(const PlanArguments& arguments) {
  const ReplanAnswer next = replan_now(arguments);
  if (!next.replan) return complain(next.replan.error().message, next.code);
  print_out("{}", arguments.json ? to_json(next.replan.value()) : to_text(next.replan.value()));
  return next.code;
}

}  // namespace

ReplanAnswer replan_now(const PlanArguments& arguments) {
  const auto job = job_of(arguments);
  if (!job) return {job.error(), kUsage};
  const auto text = read_text("--plan", arguments.plan);
  if (!text) return {text.error(), kUsage};
  const auto plan = plan::read_plan_file(arguments.plan, text.value());
  if (!plan) return {plan.error(), kUsage};
  const auto progress = progress_in(arguments.now, host::now_unix_s());
  if (!progress) return {progress.error(), kUsage};
  const auto market = market_of(arguments, job.value(), plan.value());
  if (!market) return {market.error(), kUsage};
  auto next = plan::replan({.job = job.value(),
                            .market = market.value(),
                            .plan = plan.value(),
                            .progress = progress.value(),
                            .now_unix_s = host::now_unix_s()});
  if (!next) return {Error{arguments.job + ": " + next.error().message}, kFailed};
  return {std::move(next), kDone};
}

void describe_plan(CLI::App& app, PlanArguments& arguments) {
  CLI::App* command = app.add_subcommand("plan", "Tell where to train, with how many of which machines");
  command->add_option("JOB", arguments.job, "YAML: model, samples, goal, limits (docs/planner.md)");
  command->add_flag("--json", arguments.json, "one object instead of a table");
  command->add_option("--out", arguments.out, "folder for PLAN.yaml, plan.html and plan.svg (.)");
  command->add_option("--now", arguments.now,
                      "folder or event log of the run under way: keep the machines of --plan, or change?");
  command->add_option("--plan", arguments.plan, "PLAN.yaml that the run follows");
  command->add_option("--learn", arguments.learn,
                      "folders of runs on such spot machines: how long they lived corrects the laws");
  command->add_option("--profile", arguments.profile, "network rows of your own, by tw net probe");
  command->add_option("--method", arguments.method,
                      "plan by a publication's rule: deepvm, spotdnn, transient (Li et al.), cost-first or "
                      "performance-first");
  command->add_flag("--compare", arguments.compare,
                    "a row for each of them beside our plan, by one model; writes no files");
  command->add_option("--point", arguments.point, "of goal: pareto: plan for this row of the front")
      ->check(CLI::PositiveNumber);
  describe_market(*command, arguments.market);
  describe_replay(*command, arguments.replay);
  command->footer(
      "How the plan is found, and when not to believe it: docs/planner.md\n"
      "Exit codes: 0 planned, 1 no plan keeps the limits or a file cannot be written, 2 wrong usage or "
      "input.\n"
      "\nExamples:\n  tw plan examples/plan.yaml\n  tw plan job.yaml --now tw-out --plan PLAN.yaml\n  tw "
      "plan examples/plan.yaml --compare\n  tw plan --replay availability.csv --work-h 24 "
      "--deadline-h 30");
}

int plan(const PlanArguments& arguments) {
  if (arguments.job.empty() == arguments.replay.trace.empty())
    return complain("plan: expected JOB.yaml or --replay TRACE; see: tw plan --help", kUsage);
  if (arguments.now.empty() != arguments.plan.empty() || (arguments.job.empty() && !arguments.now.empty()))
    return complain("plan: expected JOB.yaml --now FOLDER --plan PLAN.yaml, all three", kUsage);
  const int ways = static_cast<int>(arguments.compare) + static_cast<int>(!arguments.method.empty()) +
                   static_cast<int>(!arguments.now.empty() || arguments.job.empty());
  if (ways > 1) return complain("--compare, --method, --now, --replay: expected at most one of them", kUsage);
  if (arguments.compare) return compare_methods(arguments);
  if (!arguments.now.empty()) return replan_job(arguments);
  return arguments.job.empty() ? replay_traces(arguments.replay, arguments.json) : plan_job(arguments);
}

}  // namespace tw::cli
