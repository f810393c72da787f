// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/plan_sources.h"

#include <CLI/CLI.hpp>
#include <filesystem>

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
  const auto text = read_text("JOB", file);
  if (!text) return text.error();
  auto job = plan::read_job(file, text.value());
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
  const auto workload = workload_of(job, file);
  if (!workload) return workload.error();
  const auto at_hand = price_sources(sources.market);
  if (!at_hand) return at_hand.error();
  const auto network = network_at_hand(sources.profile);
  if (!network) return network.error();
  std::vector<market::Offer> offers = at_hand.value().offers;
  for (market::Offer& gone : offers_of(plan, offers)) offers.push_back(std::move(gone));
  std::vector<market::Lived> seen;
  for (const std::string& folder : sources.learn) {
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
                                    .idle_anchors = idle_anchors});
  if (!market) return Error{file + ": " + market.error().message};
  return market;
}

}  // namespace tw::cli
