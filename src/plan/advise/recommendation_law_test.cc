// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "base/prng.h"
#include "market/catalog.h"
#include "plan/advise/recommendation.h"
#include "plan/output/plan_picture.h"
#include "plan/output/recommendation_text.h"

namespace tw::plan {
namespace {

using testing::HasSubstr;

/// A small language model, whose speed is measured on few kinds of GPU and estimated on the others.
class AnyMarket {
 public:
  AnyMarket() {
    workload_.model = Models::built_in().find("RXLM").value();
    job.model = "RXLM";
    job.samples = 2e7;
    job.target_batch_size = 8192;
    job.peers_max = 4;
    job.providers = {"gcp", "aws", "azure", "lambda"};
  }

  Result<Recommendation> plan() {
    workload_.target_batch_size = job.target_batch_size;
    workload_.delayed = job.delayed();
    market_ = market_space({.job = job,
                            .workload = workload_,
                            .offers = offers,
                            .knowledge = knowledge_,
                            .tariffs = market::Tariffs::built_in()});
    if (!market_) return market_.error();
    return recommend(job, market_.value(), 1'700'000'000);
  }

  Job job;
  std::vector<market::Offer> offers = market::built_in_offers();

 private:
  Workload workload_;
  Knowledge knowledge_;
  Result<MarketSpace> market_ = Error{"none"};
};

/// Infinite where no plan keeps the limits.
double usd_of(const Result<Recommendation>& plan) { return plan ? plan.value().chosen.usd : INFINITY; }

TEST(RecommendationLaw, more_time_never_costs_more) {
  for (const std::string mode : {"sync", "delayed"}) {
    AnyMarket market;
    market.job.mode = mode;
    double last = INFINITY;
    for (const double hours : {2.0, 2.5, 3.0, 3.5, 4.0, 5.5, 6.0, 8.0}) {
      market.job.deadline_h = hours;
      const auto plan = market.plan();
      EXPECT_LE(usd_of(plan), last * (1 + 1e-9)) << mode << " " << hours;
      last = usd_of(plan);
      if (!plan) continue;
      EXPECT_TRUE(plan.value().exact) << mode << " " << hours;
      EXPECT_LE(plan.value().chosen.risky_hours, hours);
    }
    EXPECT_TRUE(std::isfinite(last));
  }
}

TEST(RecommendationLaw, a_wider_market_never_costs_more) {
  Prng random(7);
  const std::vector<std::string> names = {"T4",  "A10",   "V100",   "A100", "gcp",
                                          "aws", "azure", "lambda", "spot"};
  for (int i = 0; i < 12; ++i) {
    AnyMarket market;
    market.job.mode = random.chance(0.5) ? "sync" : "delayed";
    market.job.deadline_h = 2 + static_cast<double>(random.below(12)) / 2;
    if (random.chance(0.3)) market.job.budget_usd = 20 + 100 * random.uniform();
    market.job.shocks.per_day = random.chance(0.3) ? 1 : 0;
    market.job.exclude = {names[random.below(names.size())]};
    const auto narrow = market.plan();
    const std::string excluded = market.job.exclude.front();
    market.job.exclude = {};
    const auto wide = market.plan();
    if (narrow.ok() || wide.ok()) {
      EXPECT_LE(usd_of(wide), usd_of(narrow) * (1 + 1e-9))
          << market.job.mode << " " << market.job.deadline_h << " h without " << excluded;
    }
  }
}

TEST(RecommendationLaw, the_start_of_a_plan_is_that_of_its_own_machines) {
  AnyMarket market;
  market.job.deadline_h = 8;
  const auto before = market.plan();
  ASSERT_TRUE(before.ok()) << before.error().message;
  market::Offer slow{.provider = "aws",
                     .region = "us-east-1",
                     .vm_type = "slow",
                     .gpu = "V100",
                     .gpus = 1,
                     .purchase = market::Purchase::on_demand,
                     .usd_per_h = 900,
                     .start_up_s = 7200};
  fill_in(slow);
  slow.failure_domain = "elsewhere";
  market.offers.push_back(slow);
  const auto after = market.plan();
  ASSERT_TRUE(after.ok()) << after.error().message;
  EXPECT_EQ(to_string(after.value().chosen.peers), to_string(before.value().chosen.peers));
  EXPECT_EQ(after.value().chosen.hours, before.value().chosen.hours);
  EXPECT_EQ(after.value().chosen.usd, before.value().chosen.usd);
}

TEST(RecommendationLaw, a_cheaper_twin_that_starts_later_replaces_nothing) {
  AnyMarket market;
  market.job.deadline_h = 8;
  const auto before = market.plan();
  ASSERT_TRUE(before.ok()) << before.error().message;
  for (const market::Offer& offer : market::built_in_offers()) {
    market::Offer twin = offer;
    twin.usd_per_h -= 0.001;
    twin.start_up_s = 72000;
    market.offers.push_back(twin);
  }
  const auto after = market.plan();
  ASSERT_TRUE(after.ok()) << after.error().message;
  EXPECT_EQ(to_string(after.value().chosen.peers), to_string(before.value().chosen.peers));
  EXPECT_EQ(after.value().chosen.hours, before.value().chosen.hours);
  EXPECT_EQ(after.value().chosen.usd, before.value().chosen.usd);
}

/// The jobs whose only change is what the message proposes.
std::vector<Job> followed(const Job& job, const std::string& message) {
  std::vector<Job> jobs;
  const std::regex remedy(R"((deadline_h|budget_usd|budget_usd_per_h|risk) [0-9.]+: ([0-9.]+) or more)");
  for (std::sregex_iterator at(message.begin(), message.end(), remedy), end; at != end; ++at) {
    const double value = std::stod((*at)[2]);
    Job changed = job;
    ((*at)[1] == "deadline_h"         ? changed.deadline_h
     : (*at)[1] == "budget_usd"       ? changed.budget_usd
     : (*at)[1] == "budget_usd_per_h" ? changed.budget_usd_per_h
                                      : changed.risk) = value;
    jobs.push_back(changed);
  }
  return jobs;
}

TEST(RecommendationLaw, a_value_that_an_impossible_job_is_told_works) {
  Prng random(3);
  int tried = 0;
  for (int i = 0; i < 16; ++i) {
    AnyMarket market;
    Job& job = market.job;
    job.mode = random.chance(0.5) ? "sync" : "delayed";
    job.deadline_h = 0.5 + 3 * random.uniform();
    if (random.chance(0.5)) job.budget_usd = 5 + 60 * random.uniform();
    if (random.chance(0.3)) job.budget_usd_per_h = 1 + 5 * random.uniform();
    const auto plan = market.plan();
    if (plan) continue;
    const std::string message = plan.error().message;
    if (job.budget_usd == 0) {
      EXPECT_THAT(message, testing::Not(HasSubstr("budget_usd ")));
    }
    if (message.find("lifting one of them does not help") != std::string::npos) continue;
    for (const Job& changed : followed(Job(job), message)) {
      job = changed;
      const auto with = market.plan();
      EXPECT_TRUE(with.ok()) << message << "\n  " << (with.ok() ? "" : with.error().message);
      ++tried;
    }
  }
  EXPECT_GT(tried, 8);
}

TEST(RecommendationLaw, no_row_or_point_is_a_plan_that_cannot_run) {
  AnyMarket market;
  market.job.budget_usd_per_h = 2;
  market.job.providers = {"azure"};
  market.job.gpus = {"T4"};
  const auto plan = market.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  for (const auto* options : {&plan.value().others, &plan.value().front})
    for (const Option& one : *options) {
      EXPECT_TRUE(std::isfinite(one.hours) && one.samples_per_s > 0) << one.name;
      EXPECT_LE(one.usd_per_h, 2 * (1 + 1e-9)) << one.name;
    }
  EXPECT_THAT(to_text(market.job, plan.value()), testing::Not(HasSubstr("inf")));
  EXPECT_THAT(to_svg(picture_of(market.job, plan.value())), testing::Not(HasSubstr("inf")));
}

TEST(RecommendationLaw, a_million_samples_cost_their_part_of_all) {
  AnyMarket market;
  const auto plan = market.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const Option& chosen = plan.value().chosen;
  EXPECT_NEAR(chosen.usd_per_million, chosen.usd / (market.job.samples / 1e6), 1e-12);
}

TEST(RecommendationLaw, a_row_says_which_limit_it_misses) {
  Job job;
  job.deadline_h = 10;
  job.budget_usd = 100;
  job.domains_min = 2;
  const Option chosen{.counts = {1}, .hours = 7, .usd = 50};
  const auto verdict = [&](const Option& other) { return verdict_on(job, other, chosen); };
  EXPECT_EQ(verdict({.counts = {2}, .hours = 9, .usd = 40}), "has one failure domain, not 2");
  EXPECT_EQ(
      verdict({.counts = {2}, .hours = 9, .usd = 40, .risky_hours = 11, .late_share = 0.3, .domains = 2}),
      "misses the deadline in 30 % of the scenarios");
  EXPECT_EQ(
      verdict({.counts = {2}, .hours = 9, .usd = 40, .risky_usd = 110, .dear_share = 0.2, .domains = 2}),
      "exceeds the budget in 20 % of the scenarios");
  EXPECT_EQ(verdict({.counts = {2}, .hours = 9, .usd = 40, .slow_hours = 10.5, .domains = 2}),
            "misses the deadline by 0.5 h at the speed of risk 0.1");
  EXPECT_EQ(verdict({.counts = {2}, .hours = 9, .usd = 40, .slow_usd = 125, .domains = 2}),
            "exceeds the budget by 25 $ at the speed of risk 0.1");
  EXPECT_EQ(verdict({.counts = {2}, .hours = 9, .usd = 60, .domains = 2}), "10 $ more, 2 h longer");
}

}  // namespace
}  // namespace tw::plan
