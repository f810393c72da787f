// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/plan_sources.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/result.h"
#include "cli/plan/own_lives.h"

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
  if (!job.value().run.empty())
    job.value().run = (path.parent_path() / job.value().run).lexically_normal().string();
  return job;
}

Result<plan::MarketSpace> market_for(const std::string& file, const plan::Job& job,
                                     const PlanSources& sources, const std::vector<plan::PlannedGroup>& plan,
                                     bool idle_anchors) {
  TW_TRY(const auto workload, workload_of(job, file));
  TW_TRY(const auto at_hand, price_sources(sources.market));
  TW_TRY(const auto network, network_at_hand(sources.profile));
  std::vector<market::Offer> offers = at_hand.offers;
  for (market::Offer& gone : offers_of(plan, offers)) offers.push_back(std::move(gone));
  std::vector<market::Lived> seen;
  for (const std::string& folder : sources.learn) {
    TW_TRY(const auto lives, lives_in(folder));
    seen.insert(seen.end(), lives.begin(), lives.end());
  }
  const plan::Knowledge knowledge{.network = network};
  auto market = plan::market_space({.job = job,
                                    .workload = workload,
                                    .offers = offers,
                                    .knowledge = knowledge,
                                    .tariffs = market::Tariffs::built_in(),
                                    .seen = std::move(seen),
                                    .idle_anchors = idle_anchors});
  if (!market) return Error{file + ": " + market.error().message};
  return market;
}

}  // namespace tw::cli
