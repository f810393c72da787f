// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "market/catalog.h"
#include "plan/advise/replan.h"
#include "plan/output/recommendation_text.h"

namespace tw::plan {
namespace {

using testing::HasSubstr;

/// DeepVM's own market, which is part of the built-in prices: three GPU and eight CPU machines of AWS.
class DeepVmsMarket {
 public:
  DeepVmsMarket() {
    workload_.model = Models::built_in().find("CONV").value();
    job_.model = "CONV";
    job_.target_batch_size = workload_.target_batch_size = 32768;
    job_.samples = 20e6;
    job_.providers = {"aws"};
    job_.regions = {"us-east-1"};
    job_.gpus = {"M60", "T4", "A10G"};
    job_.peers_max = 32;
    job_.methods.deepvm_usd_per_h = 3;
    job_.methods.deepvm_checkpoint_gib = 2;
  }

  Job& job() { return job_; }

  const MarketSpace& market() {
    market_ = market_space({.job = job_,
                            .workload = workload_,
                            .offers = market::built_in_offers(),
                            .knowledge = knowledge_,
                            .tariffs = market::Tariffs::built_in(),
                            .idle_anchors = true})
                  .value();
    return market_;
  }

 private:
  Job job_;
  Workload workload_;
  Knowledge knowledge_;
  MarketSpace market_;
};

/// Figure 8 of the publication: 17 g4dn.xlarge and one c5.xlarge for 2.8526 $/h.
TEST(Comparison, deepvm_chooses_from_a_job_what_its_publication_recommends) {
  DeepVmsMarket deepvm;
  const auto plan = recommend_by(Method::deepvm, deepvm.job(), deepvm.market(), 0);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(to_string(plan.value().chosen.peers), "17xT4@aws:us-east-1;1xc5.xlarge@aws:us-east-1");
  EXPECT_THAT(plan.value().method, HasSubstr("2.853 of 3 $/h"));
  EXPECT_GT(plan.value().chosen.hours, 0);
  EXPECT_GT(plan.value().chosen.hours_spread.p90, plan.value().chosen.hours_spread.p10);
}

TEST(Comparison, a_method_that_misses_a_limit_of_the_job_says_so_wherever_it_is_named) {
  DeepVmsMarket deepvm;
  const auto planned = [&] { return recommend_by(Method::deepvm, deepvm.job(), deepvm.market(), 0).value(); };
  const Recommendation free = planned();
  EXPECT_EQ(free.misses, "");
  EXPECT_THAT(to_json(deepvm.job(), free, "PLAN.yaml"), HasSubstr("\"misses\": null"));
  deepvm.job().deadline_h = free.chosen.hours - 2;
  const Recommendation late = planned();
  EXPECT_EQ(late.misses, "misses the deadline by 2 h");
  EXPECT_EQ(late.method, free.method);
  EXPECT_THAT(to_text(deepvm.job(), late), HasSubstr("$/h; it misses the deadline by 2 h.\n"));
  EXPECT_THAT(to_plan_file(deepvm.job(), deepvm.market(), late),
              HasSubstr("; it misses the deadline by 2 h.\n"));
  EXPECT_THAT(to_json(deepvm.job(), late, "PLAN.yaml"),
              HasSubstr("\"misses\": \"misses the deadline by 2 h\""));
}

TEST(Comparison, the_table_of_a_method_has_its_choice_also_where_the_goal_is_a_front) {
  DeepVmsMarket deepvm;
  deepvm.job().goal = Goal::pareto;
  const auto plan = recommend_by(Method::deepvm, deepvm.job(), deepvm.market(), 0);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const std::string text = to_text(deepvm.job(), plan.value());
  EXPECT_THAT(text, HasSubstr("\ndeepvm  "));
  EXPECT_THAT(text, testing::Not(HasSubstr("the front")));
}

TEST(Comparison, the_plan_file_of_a_method_is_read_like_any_other) {
  DeepVmsMarket deepvm;
  const auto plan = recommend_by(Method::deepvm, deepvm.job(), deepvm.market(), 0);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto groups = read_plan_file("PLAN.yaml", to_plan_file(deepvm.job(), deepvm.market(), plan.value()));
  ASSERT_TRUE(groups.ok()) << groups.error().message;
  ASSERT_EQ(groups.value().size(), 2U);
  EXPECT_EQ(groups.value()[0].gpu, "T4");
  EXPECT_FALSE(groups.value()[0].anchor);
  EXPECT_EQ(groups.value()[1].vm_type, "c5.xlarge");
  EXPECT_EQ(groups.value()[1].gpu, "");
  EXPECT_TRUE(groups.value()[1].anchor);
}

TEST(Comparison, a_run_by_the_plan_of_a_method_can_be_planned_again) {
  DeepVmsMarket deepvm;
  const auto plan = recommend_by(Method::deepvm, deepvm.job(), deepvm.market(), 0);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto groups =
      read_plan_file("PLAN.yaml", to_plan_file(deepvm.job(), deepvm.market(), plan.value())).value();
  EXPECT_TRUE(offers_of(groups, deepvm.job(), market::built_in_offers()).empty());
  EXPECT_EQ(offers_of(groups, deepvm.job(), {}).size(), 2U);
  const RunProgress progress{.samples = 10e6, .elapsed_h = 5, .peer_hours = 85, .peers = 17};
  const auto next = replan({deepvm.job(), deepvm.market(), groups, progress, 0});
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_EQ(next.value().current.peers, plan.value().chosen.peers);
}

TEST(Comparison, no_method_is_better_by_the_goal_than_our_plan_within_the_same_limits) {
  for (const double deadline_h : {0.0, 24.0, 60.0}) {
    DeepVmsMarket deepvm;
    deepvm.job().deadline_h = deadline_h;
    const auto rows = compare(deepvm.job(), deepvm.market(), 0);
    ASSERT_TRUE(rows.ok()) << rows.error().message;
    const Option& ours = rows.value().ours.chosen;
    ASSERT_EQ(rows.value().rows.size(), all_methods().size());
    for (const MethodRow& row : rows.value().rows) {
      EXPECT_FALSE(row.reason.empty()) << to_string(row.method);
      if (!row.option) continue;
      EXPECT_FALSE(row.option->verdict.empty()) << to_string(row.method);
      const bool in_time = deadline_h == 0 || row.option->risky_hours <= deadline_h;
      EXPECT_TRUE(!in_time || row.option->usd >= ours.usd * (1 - 1e-9)) << to_string(row.method);
    }
    EXPECT_THAT(to_text(deepvm.job(), rows.value()), HasSubstr("performance-first"));
    EXPECT_THAT(to_json(deepvm.job(), rows.value()), HasSubstr("\"why_it_lost\""));
  }
}

TEST(Comparison, machines_that_train_nothing_are_paid_and_averaged_with_but_never_chosen_by_the_search) {
  DeepVmsMarket deepvm;
  const MarketSpace market = deepvm.market();
  std::vector<int> counts(market.candidates.size());
  std::size_t idle = 0, t4 = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (market.candidates[i].offer.gpu.empty()) idle = i;
    const bool spot = market.candidates[i].offer.purchase == market::Purchase::spot;
    if (market.candidates[i].offer.gpu == "T4" && spot) t4 = i;
    EXPECT_TRUE(!market.candidates[i].offer.gpu.empty() || market.space.choices[i].most == 0);
  }
  ASSERT_GT(idle, 0U);
  counts[t4] = 4;
  const Option without = evaluate(deepvm.job(), market, counts, "without");
  counts[idle] = 1;
  const Option with = evaluate(deepvm.job(), market, counts, "with");
  EXPECT_LE(with.samples_per_s, without.samples_per_s);
  EXPECT_GT(with.usd, without.usd);
  EXPECT_GT(with.round.seconds, 0);
}

TEST(Comparison, without_a_price_limit_that_of_our_own_plan_counts) {
  DeepVmsMarket deepvm;
  deepvm.job().methods.deepvm_usd_per_h = 0;
  deepvm.job().deadline_h = 48;
  const auto rows = compare(deepvm.job(), deepvm.market(), 0);
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  EXPECT_GT(rows.value().usd_per_h, 0);
  deepvm.job().budget_usd_per_h = 2.5;
  EXPECT_EQ(compare(deepvm.job(), deepvm.market(), 0).value().usd_per_h, 2.5);
}

}  // namespace
}  // namespace tw::plan
