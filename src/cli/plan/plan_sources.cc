// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/plan_sources.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/result.h"
#include "base/text/text_file.h"
#include "cli/plan/own_lives.h"
#include "train/run/run_file_yaml.h"

namespace tw::cli {

void describe_sources(CLI::App& command, PlanSources& sources) {
  command.add_option("--learn", sources.learn,
                     "folders of runs on such machines, whose losses correct the laws");
  command.add_option("--profile", sources.profile,
                     "FILE.csv of tw net probe; overrides the built-in network");
  describe_market(command, sources.market);
}

Result<plan::Job> read_job_file(const std::string& file) {
  TW_TRY(const auto text, read_text("JOB", file));
  auto job = plan::read_job(file, text);
  if (!job) return job.error();
  const std::filesystem::path path = std::filesystem::absolute(file).lexically_normal();
  job.value().file = path.string();
  if (job.value().run.empty()) return job;
  job.value().run = (path.parent_path() / job.value().run).lexically_normal().string();
  // Whether its values fit depends on what the plan chooses (run_file_notes).
  TW_TRY(train::absolute_paths(job.value().run));
  TW_TRY(const auto run, read_text_file(job.value().run, kMostYamlBytes));
  take_run_file(job.value(), run);
  return job;
}

Result<PlanKnowledge> knowledge_for(const std::string& file, const plan::Job& job, const PlanSources& sources,
                                    const std::vector<plan::PlannedGroup>& plan) {
  PlanKnowledge known{.file = file, .under_way = !plan.empty()};
  TW_TRY(known.workload, workload_of(job, file));
  TW_TRY(auto at_hand, price_sources(sources.market));
  TW_TRY(known.network, network_at_hand(sources.profile));
  known.offers = std::move(at_hand.offers);
  for (market::Offer& gone : offers_of(plan, job, known.offers)) known.offers.push_back(std::move(gone));
  for (const std::string& folder : sources.learn) {
    TW_TRY(const auto lives, lives_in(folder));
    known.seen.insert(known.seen.end(), lives.begin(), lives.end());
  }
  return known;
}

Result<plan::MarketSpace> market_for(const PlanKnowledge& known, const plan::Job& job, bool idle_anchors) {
  const plan::Workload workload = in_mode_of(job, known.workload);
  const plan::Knowledge knowledge = known.knowledge();
  auto market = plan::market_space({.job = job,
                                    .workload = workload,
                                    .offers = known.offers,
                                    .knowledge = knowledge,
                                    .tariffs = market::Tariffs::built_in(),
                                    .seen = known.seen,
                                    .idle_anchors = idle_anchors,
                                    .under_way = known.under_way});
  if (!market) return Error{known.file + ": " + market.error().message};
  return market;
}

}  // namespace tw::cli
