// SPDX-License-Identifier: Apache-2.0
#include "plan/methods/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "market/catalog.h"

namespace tw::plan {
namespace {

using testing::HasSubstr;

/// ConvNextLarge on a market of two sites with a machine without a GPU at the first.
class Choosing {
 public:
  Choosing() {
    job_.target_batch_size = 32768;
    job_.samples = 20e6;
    workload_.model = Models::built_in().find("CONV").value();
    workload_.target_batch_size = job_.target_batch_size;
    add("east", "T4", 0.2, 0.6);
    add("east", "A10G", 0.5, 1.5);
    add("west", "T4", 0.25, 0.5);
    offers_.push_back({.provider = "lambda",
                       .region = "east",
                       .failure_domain = "east",
                       .vm_type = "c5.xlarge",
                       .memory_gib = 8,
                       .purchase = market::Purchase::on_demand,
                       .usd_per_h = 0.17});
  }

  Job& job() { return job_; }

  std::vector<market::Offer>& offers() { return offers_; }

  Result<MethodChoice> choose(Method method, double usd_per_h = 0) {
    market_ = market_space({.job = job_,
                            .workload = workload_,
                            .offers = offers_,
                            .knowledge = knowledge_,
                            .tariffs = market::Tariffs::built_in(),
                            .idle_anchors = true})
                  .value();
    return plan::choose(method, {job_, market_, usd_per_h});
  }

  /// "3xT4 spot@east 1xT4 on-demand@east"
  std::string machines(const Result<MethodChoice>& choice) const {
    if (!choice) return choice.error().message;
    std::string text;
    for (std::size_t i = 0; i < choice.value().counts.size(); ++i) {
      if (choice.value().counts[i] == 0) continue;
      const market::Offer& offer = market_.candidates[i].offer;
      text += (text.empty() ? "" : " ") + std::to_string(choice.value().counts[i]) + "x" +
              machine_name(offer) + " " + std::string(to_string(offer.purchase)) + "@" + offer.region;
    }
    return text;
  }

 private:
  void add(const std::string& region, const std::string& gpu, double spot, double on_demand) {
    for (const auto& [purchase, usd] :
         {std::pair{market::Purchase::spot, spot}, std::pair{market::Purchase::on_demand, on_demand}})
      offers_.push_back({.provider = "lambda",
                         .region = region,
                         .failure_domain = region,
                         .vm_type = gpu + ".large",
                         .gpu = gpu,
                         .gpus = 1,
                         .network_gbps = 10,
                         .purchase = purchase,
                         .usd_per_h = usd,
                         .taken_in_30_days = 0.05});
  }

  Job job_;
  Workload workload_;
  Knowledge knowledge_;
  std::vector<market::Offer> offers_;
  MarketSpace market_;
};

// FLOPP: 377 / 0.2 for an eastern T4, 696 / 0.5 for an A10G. (2 - 0.17) / 0.2 pays for nine and the anchor.
TEST(MethodChoice, deepvm_takes_the_best_score_for_a_dollar_and_a_cpu_machine_for_checkpoints) {
  Choosing market;
  const auto choice = market.choose(Method::deepvm, 2);
  EXPECT_EQ(market.machines(choice), "9xT4 spot@east 1xc5.xlarge on-demand@east");
  EXPECT_THAT(choice.value().reason, HasSubstr("tiering, 9 x T4 with 1 x c5.xlarge"));
}

TEST(MethodChoice, deepvm_has_a_single_anchor_where_no_machine_has_room_for_the_checkpoint) {
  Choosing market;
  market.job().methods.deepvm_checkpoint_gib = 20;
  const auto choice = market.choose(Method::deepvm, 2);
  EXPECT_EQ(market.machines(choice), "7xT4 spot@east 1xT4 on-demand@east");
  EXPECT_THAT(choice.value().reason, HasSubstr("single anchor, 8 x T4"));
}

TEST(MethodChoice, the_jobs_own_score_of_a_gpu_and_price_limit_count) {
  Choosing market;
  market.job().methods.deepvm_scores["A10G"] = 3000;
  market.job().methods.deepvm_usd_per_h = 1.5;
  EXPECT_EQ(market.machines(market.choose(Method::deepvm, 100)),
            "2xA10G spot@east 1xc5.xlarge on-demand@east");
}

TEST(MethodChoice, cost_first_has_the_most_machines_and_performance_first_the_fastest) {
  Choosing market;
  EXPECT_EQ(market.machines(market.choose(Method::cost_first, 2.1)), "7xT4 spot@east 1xT4 on-demand@east");
  EXPECT_EQ(market.machines(market.choose(Method::performance_first, 2.1)),
            "1xA10G spot@east 1xA10G on-demand@east");
}

TEST(MethodChoice, quotas_and_the_most_peers_bound_the_methods_too) {
  Choosing market;
  market.job().peers_max = 6;
  EXPECT_EQ(market.machines(market.choose(Method::deepvm, 100)), "5xT4 spot@east 1xc5.xlarge on-demand@east");
  market.job().quotas["spot"] = 3;
  for (const Method method : all_methods()) {
    const auto choice = market.choose(method, 100);
    if (!choice) continue;
    EXPECT_LE(std::accumulate(choice.value().counts.begin(), choice.value().counts.end(), 0), 4)
        << to_string(method) << ": " << market.machines(choice);
  }
}

TEST(MethodChoice, what_costs_too_much_is_no_choice_and_the_limit_is_named) {
  Choosing market;
  EXPECT_THAT(market.machines(market.choose(Method::cost_first, 0.3)), HasSubstr("at most 0.3 $/h"));
  std::erase_if(market.offers(),
                [](const market::Offer& offer) { return offer.purchase == market::Purchase::on_demand; });
  EXPECT_THAT(market.machines(market.choose(Method::deepvm, 2)), HasSubstr("both spot and on-demand"));
}

// 20 million samples at 36 per second and T4 take 154 h of one T4.
TEST(MethodChoice, spotdnn_and_transient_have_one_kind_of_spot_machine_and_enough_to_be_in_time) {
  for (const Method method : {Method::spotdnn, Method::transient}) {
    Choosing market;
    market.job().deadline_h = 24;
    const auto choice = market.choose(method);
    ASSERT_TRUE(choice.ok()) << to_string(method) << ": " << choice.error().message;
    EXPECT_THAT(market.machines(choice), HasSubstr("xT4 spot@east")) << to_string(method);
    EXPECT_GE(std::accumulate(choice.value().counts.begin(), choice.value().counts.end(), 0), 7);
    market.job().deadline_h = 0.1;
    EXPECT_THAT(market.machines(market.choose(method)), HasSubstr("in time")) << to_string(method);
  }
}

TEST(MethodChoice, names_are_read_and_a_wrong_one_is_told_the_others) {
  for (const Method method : all_methods())
    EXPECT_EQ(parse_method(std::string(to_string(method))).value(), method);
  EXPECT_THAT(parse_method("deep").error().message, HasSubstr("deep: expected one of deepvm, spotdnn"));
}

}  // namespace
}  // namespace tw::plan
