// SPDX-License-Identifier: Apache-2.0
#include "plan/recommendation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "market/catalog.h"
#include "plan/recommendation_text.h"

namespace tw {
namespace {

using testing::HasSubstr;

/// ConvNextLarge with the built-in prices.
class Planning {
 public:
  Planning() { workload_.model = Models::built_in().find("CONV").value(); }

  Job& job() { return job_; }

  Result<MarketSpace> market() {
    workload_.target_batch_size = job_.target_batch_size;
    return market_space({.job = job_,
                         .workload = workload_,
                         .offers = built_in_offers(),
                         .knowledge = knowledge_,
                         .tariffs = Tariffs::built_in()});
  }

  Result<Recommendation> plan() {
    market_ = market();
    if (!market_) return market_.error();
    return recommend(job_, market_.value(), 1'700'000'000);
  }

  const MarketSpace& last_market() const { return market_.value(); }

 private:
  Job job_{
      .model = "CONV", .target_batch_size = 32768, .samples = 5e6, .gpus = {"T4", "A10"}, .peers_max = 8};
  Workload workload_;
  Knowledge knowledge_;
  Result<MarketSpace> market_ = Error{"none"};
};

TEST(Recommendation, without_limits_one_machine_is_cheapest_and_many_are_fastest) {
  Planning planning;
  const auto cheapest = planning.plan();
  ASSERT_TRUE(cheapest.ok()) << cheapest.error().message;
  EXPECT_EQ(count_of(cheapest.value().chosen.peers), 1);
  planning.job().goal = Goal::fastest;
  const auto fastest = planning.plan();
  ASSERT_TRUE(fastest.ok()) << fastest.error().message;
  EXPECT_EQ(count_of(fastest.value().chosen.peers), 8);
  EXPECT_LT(fastest.value().chosen.hours, cheapest.value().chosen.hours);
  EXPECT_GT(fastest.value().chosen.usd, cheapest.value().chosen.usd);
}

TEST(Recommendation, a_deadline_is_kept_in_as_many_scenarios_as_asked_for) {
  Planning planning;
  planning.job().deadline_h = 10;
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_GT(count_of(plan.value().chosen.peers), 1);
  EXPECT_LE(plan.value().chosen.risky_hours, 10);
  for (const Option& other : plan.value().others) EXPECT_FALSE(other.verdict.empty()) << other.name;
}

TEST(Recommendation, a_deadline_that_nothing_meets_is_answered_with_the_nearest) {
  Planning planning;
  planning.job().deadline_h = 0.5;
  const auto plan = planning.plan();
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message, HasSubstr("deadline_h 0.5"));
  EXPECT_THAT(plan.error().message, HasSubstr("could be met"));
}

TEST(Recommendation, limits_that_contradict_each_other_name_what_each_would_have_to_be) {
  Planning planning;
  planning.job().deadline_h = 10;
  planning.job().budget_usd = 0.5;
  const auto plan = planning.plan();
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message, HasSubstr("budget_usd 0.5"));
}

TEST(Recommendation, a_gpu_that_nobody_offers_is_named) {
  Planning planning;
  planning.job().gpus = {"TPU9"};
  const auto market = planning.market();
  ASSERT_FALSE(market.ok());
  EXPECT_THAT(market.error().message, HasSubstr("TPU9"));
}

TEST(Recommendation, quotas_and_failure_domains_are_kept) {
  Planning planning;
  planning.job().goal = Goal::fastest;
  planning.job().quotas = {{"A10", 2}};
  planning.job().domains_min = 3;
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  int a10 = 0;
  for (const PeerGroup& group : plan.value().chosen.peers) a10 += group.gpu == "A10" ? group.count : 0;
  EXPECT_LE(a10, 2);
  EXPECT_GE(plan.value().chosen.peers.size(), 3U);
}

TEST(Recommendation, an_owned_host_is_used_before_others_are_paid) {
  Planning planning;
  planning.job().owned = parse_peers("1xT4@onprem:eu").value();
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(to_string(plan.value().chosen.peers), "1xT4@onprem:eu");
}

TEST(Recommendation, the_plan_file_lists_machines_and_the_picture_all_options) {
  Planning planning;
  planning.job().deadline_h = 10;
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const std::string file = to_plan_file(planning.job(), planning.last_market(), plan.value());
  EXPECT_THAT(file, HasSubstr("cluster: \"" + to_string(plan.value().chosen.peers) + "\""));
  EXPECT_THAT(file, HasSubstr("deadline_h: 10"));
  EXPECT_THAT(to_svg(plan.value()), HasSubstr("chosen"));
  EXPECT_THAT(to_json(planning.job(), plan.value()), HasSubstr("\"throughput_sps\""));
}

}  // namespace
}  // namespace tw
