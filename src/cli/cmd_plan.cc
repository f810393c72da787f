// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>

#include "cli/commands.h"
#include "cli/credentials.h"
#include "cli/plan_replay.h"
#include "plan/model_profile_yaml.h"
#include "plan/recommendation_text.h"

namespace tw {
namespace {

Result<Workload> workload_of(const Job& job, const std::string& file) {
  Workload workload{.target_batch_size = job.target_batch_size,
                    .pattern = job.pattern,
                    .bytes_per_param = job.bytes_per_param,
                    .streams = job.streams,
                    .delayed = job.delayed};
  Result<ModelProfile> model = Error{""};
  if (job.profile.empty()) {
    model = Models::built_in().find(job.model);
  } else {
    const std::string path = (std::filesystem::path(file).parent_path() / job.profile).string();
    const auto text = read_text("profile", path);
    if (!text) return Error{fmt::format("{}: {}", file, text.error().message)};
    model = read_profile(path, text.value());
  }
  if (!model) return Error{fmt::format("{}: {}", file, model.error().message)};
  workload.model = std::move(model).value();
  return workload;
}

Status write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (file) return Unit{};
  return Error{fmt::format("{}: cannot be written; --out FOLDER takes the files elsewhere", path)};
}

Status write_files(const Job& job, const MarketSpace& market, const Recommendation& plan,
                   const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (const Status done = write(folder + "/PLAN.yaml", to_plan_file(job, market, plan)); !done) return done;
  return write(folder + "/plan.svg", to_svg(plan));
}

int plan_job(const PlanArguments& arguments) {
  const auto text = read_text("JOB", arguments.job);
  if (!text) return complain(text.error().message, kUsage);
  const auto job = read_job(arguments.job, text.value());
  if (!job) return complain(job.error().message, kUsage);
  const auto workload = workload_of(job.value(), arguments.job);
  if (!workload) return complain(workload.error().message, kUsage);
  const auto offers = market_at_hand(arguments.market);
  if (!offers) return complain(offers.error().message, kUsage);
  const Knowledge knowledge;
  const auto market = market_space({.job = job.value(),
                                    .workload = workload.value(),
                                    .offers = offers.value().offers,
                                    .knowledge = knowledge,
                                    .tariffs = Tariffs::built_in()});
  if (!market) return complain(arguments.job + ": " + market.error().message, kUsage);
  const auto plan = recommend(job.value(), market.value(), now_unix_s());
  if (!plan) return complain(arguments.job + ": " + plan.error().message, kFailed);
  if (const Status done = write_files(job.value(), market.value(), plan.value(), arguments.out); !done)
    return complain(done.error().message, kFailed);
  fmt::print("{}", arguments.json ? to_json(job.value(), plan.value()) : to_text(job.value(), plan.value()));
  if (!arguments.json) fmt::print("\n{0}/PLAN.yaml and {0}/plan.svg are written\n", arguments.out);
  return kDone;
}

}  // namespace

void describe_plan(CLI::App& app, PlanArguments& arguments) {
  CLI::App* command = app.add_subcommand("plan", "Tell where to train, with how many of which machines");
  command->add_option("JOB", arguments.job, "YAML: model, samples, goal, limits (docs/planner.md)");
  command->add_flag("--json", arguments.json, "one object instead of a table");
  command->add_option("--out", arguments.out, "folder for PLAN.yaml and plan.svg (.)");
  describe_market(*command, arguments.market);
  describe_replay(*command, arguments.replay);
  command->footer(
      "How the plan is found, and when not to believe it: docs/planner.md\n"
      "\nExamples:\n  tw plan examples/plan.yaml\n  tw plan --replay availability.csv --work-h 24 "
      "--deadline-h 30");
}

int plan(const PlanArguments& arguments) {
  if (arguments.job.empty() == arguments.replay.trace.empty())
    return complain("plan: expected JOB.yaml or --replay TRACE; see: tw plan --help", kUsage);
  return arguments.job.empty() ? replay_traces(arguments.replay, arguments.json) : plan_job(arguments);
}

}  // namespace tw
