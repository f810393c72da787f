// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/recommendation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "market/catalog.h"
#include "plan/advise/alternatives.h"
#include "plan/advise/replan.h"
#include "plan/output/recommendation_text.h"

namespace tw::plan {
namespace {

using testing::HasSubstr;

/// ConvNextLarge with the built-in prices.
class Planning {
 public:
  Planning() { workload_.model = Models::built_in().find("CONV").value(); }

  Job& job() { return job_; }

  ModelProfile& model() { return workload_.model; }

  std::vector<market::Offer>& offers() { return offers_; }

  std::vector<market::Lived>& seen() { return seen_; }

  Result<MarketSpace> market() {
    workload_.target_batch_size = job_.target_batch_size;
    workload_.delayed = job_.delayed();
    return market_space({.job = job_,
                         .workload = workload_,
                         .offers = offers_,
                         .knowledge = knowledge_,
                         .tariffs = market::Tariffs::built_in(),
                         .seen = seen_});
  }

  Result<Recommendation> plan() {
    market_ = market();
    if (!market_) return market_.error();
    return recommend(job_, market_.value(), 1'700'000'000);
  }

  const MarketSpace& last_market() const { return market_.value(); }

 private:
  static Job five_million_samples() {
    Job job;
    job.model = "CONV";
    job.target_batch_size = 32768;
    job.samples = 5e6;
    job.gpus = {"T4", "A10"};
    job.peers_max = 8;
    return job;
  }

  Job job_ = five_million_samples();
  Workload workload_;
  Knowledge knowledge_;
  std::vector<market::Offer> offers_ = market::built_in_offers();
  std::vector<market::Lived> seen_;
  Result<MarketSpace> market_ = Error{"none"};
};

TEST(Recommendation, trains_near_the_data_where_reading_elsewhere_costs_more_than_the_machines) {
  Planning planning;
  planning.job().data.store = market::Tariffs::built_in().store("s3:us-west-2").value();
  const auto far = planning.plan();
  ASSERT_TRUE(far.ok()) << far.error().message;
  for (const PeerGroup& group : far.value().chosen.peers)
    EXPECT_EQ(group.site.provider, "aws") << to_string(far.value().chosen.peers);
  EXPECT_THAT(far.value().assumptions, testing::Contains(HasSubstr("data: from s3:us-west-2")));
  const std::string text = to_text(planning.job(), far.value());
  EXPECT_THAT(text, HasSubstr("requests/s; T4@aws:us-east-1 reads "));
  EXPECT_THAT(to_json(planning.job(), far.value(), "PLAN.yaml"), HasSubstr("\"card_mbit_s\""));

  planning.job().data.store = market::Tariffs::built_in().store("r2").value();
  const auto free = planning.plan();
  ASSERT_TRUE(free.ok());
  EXPECT_LT(free.value().chosen.usd, far.value().chosen.usd);
}

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

TEST(Recommendation, one_spot_machine_counts_its_checkpoints_and_the_work_done_again) {
  Planning planning;
  planning.job().providers = {"gcp"};
  planning.job().gpus = {"T4"};
  planning.job().purchases = {market::Purchase::spot};
  planning.job().peers_max = 1;
  const Recommendation plan = planning.plan().value();
  EXPECT_GT(plan.checkpoint_share, 0.01);
  EXPECT_THAT(to_text(planning.job(), plan), HasSubstr("All peers are lost at once every "));
  for (market::Offer& offer : planning.offers()) offer.notice_s = 3600;
  const Recommendation warned = planning.plan().value();
  EXPECT_EQ(warned.chosen.counts, plan.chosen.counts);
  EXPECT_EQ(warned.checkpoint_interval_s, 0) << "the notice is long enough for a checkpoint";
  EXPECT_NEAR(plan.chosen.samples_per_s / warned.chosen.samples_per_s, 1 - plan.checkpoint_share, 1e-9);
  EXPECT_GT(plan.chosen.usd, warned.chosen.usd);
  EXPECT_GT(plan.chosen.hours_spread.p50, warned.chosen.hours_spread.p50);
  EXPECT_GT(plan.chosen.risky_hours, warned.chosen.risky_hours);
}

/// Nothing in a run waits to save money.
TEST(Recommendation, a_plan_keeps_a_price_per_hour_at_its_full_speed) {
  Planning planning;
  planning.job().gpus = {"A10"};
  planning.job().providers = {"lambda"};
  planning.job().peers_max = 1;
  const Option free = planning.plan().value().chosen;
  planning.job().budget_usd_per_h = 1.01 * free.usd_per_h;
  EXPECT_EQ(planning.plan().value().chosen.samples_per_s, free.samples_per_s);
  planning.job().budget_usd_per_h = 0.99 * free.usd_per_h;
  ASSERT_GT(planning.job().budget_usd_per_h, 0.6) << "the machine alone";
  const auto plan = planning.plan();
  ASSERT_FALSE(plan.ok()) << plan.value().chosen.samples_per_s;
  EXPECT_THAT(plan.error().message, HasSubstr("budget_usd_per_h "));
}

TEST(Recommendation, runners_up_differ_in_gpu_cloud_and_number) {
  Planning planning;
  planning.job().deadline_h = 10;
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const Option& chosen = plan.value().chosen;
  const auto main = std::ranges::max_element(chosen.peers, {}, &PeerGroup::count);
  const auto other = [&](const std::string& name) -> const Option& {
    const auto found = std::ranges::find(plan.value().others, name, &Option::name);
    EXPECT_NE(found, plan.value().others.end()) << name;
    return found != plan.value().others.end() ? *found : chosen;
  };
  for (const PeerGroup& group : other("without " + main->gpu).peers) EXPECT_NE(group.gpu, main->gpu);
  for (const PeerGroup& group : other("without " + main->site.provider).peers)
    EXPECT_NE(group.site.provider, main->site.provider);
  EXPECT_LE(count_of(other("half as many").peers), count_of(chosen.peers) / 2);
  EXPECT_FALSE(chosen.bought.empty());
}

TEST(Recommendation, losses_are_said_of_runs_where_they_are_rare) {
  EXPECT_EQ(losses_text(0), "no machine is taken");
  EXPECT_EQ(losses_text(1.0 / 256), "1 run in 256 loses a machine");
  EXPECT_EQ(losses_text(2.5), "2.5 machines are taken in the mean");
}

TEST(Recommendation, an_offer_counts_for_each_quota_that_names_it) {
  Planning planning;
  planning.job().deadline_h = 10;
  planning.job().quotas = {{"A10", 8}, {"T4", 8}, {"spot", 2}};
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  int spot = 0;
  const auto& candidates = planning.last_market().candidates;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].offer.purchase == market::Purchase::spot) spot += plan.value().chosen.counts[i];
  EXPECT_LE(spot, 2) << to_string(plan.value().chosen.peers);
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

TEST(Recommendation, the_pareto_front_goes_from_the_cheapest_to_the_fastest_and_its_knee_is_chosen) {
  Planning planning;
  const double least_usd = planning.plan().value().chosen.usd;
  planning.job().goal = Goal::fastest;
  const double least_h = planning.plan().value().chosen.hours;
  planning.job().goal = Goal::pareto;
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto& front = plan.value().front;
  ASSERT_GE(front.size(), 3U);
  EXPECT_NEAR(front.front().usd, least_usd, 1e-3 * least_usd);
  EXPECT_NEAR(front.back().hours, least_h, 1e-3 * least_h);
  for (std::size_t i = 1; i < front.size(); ++i) {
    EXPECT_LT(front[i].hours, front[i - 1].hours);
    EXPECT_GT(front[i].usd, front[i - 1].usd);
  }
  EXPECT_GT(plan.value().chosen.hours, front.back().hours);
  EXPECT_LT(plan.value().chosen.hours, front.front().hours);
  EXPECT_THAT(to_text(planning.job(), plan.value()), HasSubstr("the knee"));
  planning.job().front_point = 1;
  EXPECT_EQ(planning.plan().value().chosen.counts, front.front().counts);
  planning.job().front_point = 99;
  EXPECT_EQ(planning.plan().value().chosen.counts, front.back().counts);
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

TEST(Recommendation, what_cannot_be_met_is_named_with_the_nearest_that_can) {
  Planning planning;
  const auto complaint = [&] {
    const auto plan = planning.plan();
    return plan.ok() ? "" : plan.error().message;
  };
  planning.job().deadline_h = 2;
  planning.job().peers_max = 4;
  EXPECT_THAT(complaint(), HasSubstr("peers_max 4: "));
  planning.job().peers_max = 8;
  planning.job().deadline_h = 0.01;
  planning.job().budget_usd = 0.01;
  EXPECT_THAT(complaint(), HasSubstr("deadline_h 0.01: "));
  EXPECT_THAT(complaint(), HasSubstr("budget_usd 0.01: "));
  planning.job().deadline_h = planning.job().budget_usd = 0;
  planning.job().providers = {"gcp"};
  planning.job().quotas = {{"gcp", 0}};
  EXPECT_THAT(complaint(), HasSubstr("quotas gcp 0: 1 could be met"));
  planning.job().quotas = {{"gpc", 4}};
  EXPECT_EQ(complaint(), "quotas gpc: no offer has this name; did you mean \"gcp\"?");
  planning.job().quotas = {};
  planning.job().purchases = {market::Purchase::owned};
  EXPECT_THAT(complaint(), HasSubstr("purchase owned: without this limit there are on-demand, spot"));
  planning.job().owned = parse_peers("2xFOO@onprem:eu").value();
  EXPECT_THAT(complaint(), HasSubstr("owned 2xFOO@onprem:eu: FOO: unknown GPU"));
}

TEST(Recommendation, a_larger_peers_max_brings_no_more_own_hosts) {
  Planning planning;
  planning.job().owned = parse_peers("2xT4@onprem:eu").value();
  planning.job().purchases = {market::Purchase::owned};
  planning.job().peers_max = 2;
  planning.job().deadline_h = 10;
  const auto plan = planning.plan();
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message, HasSubstr("deadline_h 10: "));
  EXPECT_THAT(plan.error().message, testing::Not(HasSubstr("peers_max 2: ")));
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

TEST(Recommendation, the_plan_on_demand_keeps_the_failure_domains_where_it_can) {
  Planning planning;
  planning.job().domains_min = 2;
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto option = [&](const std::string& name) {
    return *std::ranges::find(plan.value().others, name, &Option::name);
  };
  EXPECT_GE(option("on-demand only").domains, 2);
  EXPECT_EQ(option("one site").domains, 1) << "it cannot";
}

TEST(Recommendation, an_owned_host_is_used_before_others_are_paid) {
  Planning planning;
  planning.job().owned = parse_peers("1xT4@onprem:eu").value();
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(to_string(plan.value().chosen.peers), "1xT4@onprem:eu");
}

TEST(Recommendation, a_machine_of_several_gpus_is_one_peer) {
  Planning planning;
  market::Offer four{.provider = "gcp",
                     .region = "us-west1",
                     .vm_type = "n1-standard-32+4xT4",
                     .gpu = "T4",
                     .gpus = 4,
                     .purchase = market::Purchase::on_demand,
                     .usd_per_h = 0.4};
  fill_in(four);
  planning.offers().push_back(four);
  planning.job().goal = Goal::fastest;
  planning.job().gpus = {"T4"};
  planning.job().peers_max = 2;
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(to_string(plan.value().chosen.peers), "2x4xT4@gcp:us-west1");
  EXPECT_THAT(to_plan_file(planning.job(), planning.last_market(), plan.value()),
              HasSubstr("count: 2, role: anchor, site: \"gcp:us-west1\""));
  EXPECT_THAT(plan.value().assumptions,
              testing::Contains(HasSubstr("4xT4: one peer, counted as 4 T4; the program has to use all")))
      << "a plain process uses one";
  planning.job().gpus = {"4xT4"};
  const MarketSpace fours = planning.market().value();
  for (const Candidate& one : fours.candidates) EXPECT_EQ(one.offer.gpus, 4);
}

TEST(Recommendation, shocks_and_own_logs_make_spot_machines_worth_less) {
  Planning planning;
  planning.job().purchases = {market::Purchase::spot};
  const auto share = [&] { return planning.market().value().candidates.front().working_share; };
  const double calm = share();
  planning.job().shocks = {.per_day = 24, .share = 1};
  EXPECT_LT(share(), calm);
  planning.job().shocks = {};
  planning.seen().assign(200, market::Lived{0.5, true});
  EXPECT_LT(share(), calm);
}

TEST(Recommendation, more_than_64_failure_domains_are_told_apart) {
  Planning planning;
  planning.offers().clear();
  for (int zone = 0; zone < 70; ++zone) {
    market::Offer offer{.provider = "lambda",
                        .region = "r" + std::to_string(zone),
                        .vm_type = "one",
                        .gpu = "T4",
                        .gpus = 1,
                        .purchase = market::Purchase::on_demand,
                        .usd_per_h = zone < 66 ? 5.0 : 0.5};
    fill_in(offer);
    planning.offers().push_back(offer);
  }
  planning.job().domains_min = 4;
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan.value().chosen.peers.size(), 4U);
  EXPECT_LT(plan.value().chosen.usd_per_h, 5);
}

TEST(Recommendation, the_plan_file_lists_machines_and_the_picture_all_options) {
  Planning planning;
  planning.job().deadline_h = 10;
  planning.job().run = "/runs/mnist.yaml";
  planning.job().file = "/runs/job.yaml";
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const std::string file = to_plan_file(planning.job(), planning.last_market(), plan.value());
  EXPECT_THAT(file, HasSubstr("cluster: \"" + to_string(plan.value().chosen.peers) + "\""));
  const auto read = read_plan("PLAN.yaml", file);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().run, "/runs/mnist.yaml");
  EXPECT_EQ(read.value().job, "/runs/job.yaml");
  for (const PlannedGroup& group : read.value().peers) {
    EXPECT_EQ(group.anchor, group.purchase != market::Purchase::spot);
    EXPECT_FALSE(group.alternatives.empty());
  }
  EXPECT_THAT(to_json(planning.job(), plan.value(), "PLAN.yaml"), HasSubstr("\"throughput_sps\""));
  EXPECT_THAT(to_json(planning.job(), plan.value(), "o2/PLAN.yaml"),
              HasSubstr("\"next\": \"tw up o2/PLAN.yaml --on "));
  Recommendation mixed = plan.value();
  mixed.chosen.bought = "owned, spot";
  EXPECT_THAT(next_command(planning.job(), mixed, "PLAN.yaml"),
              HasSubstr("--on owned=ssh --hosts HOSTS --on skypilot --image IMAGE"));
  mixed.chosen.bought = "spot";
  EXPECT_THAT(next_command(planning.job(), mixed, "PLAN.yaml"),
              HasSubstr("--on skypilot --image IMAGE --with join=HOST:PORT"))
      << "what it would ask for";
}

TEST(Recommendation, table_and_json_show_the_mode_that_the_job_names) {
  Planning planning;
  planning.job().mode = "streaming";
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_THAT(
      to_text(planning.job(), plan.value()),
      HasSubstr("Mode streaming in fp16, 32768 samples a round: a round is averaged while the next "));
  EXPECT_THAT(to_json(planning.job(), plan.value(), "PLAN.yaml"), HasSubstr("\"mode\": \"streaming\""));
}

TEST(Recommendation, each_machine_of_the_plan_file_has_a_role_and_offers_that_may_stand_in_for_it) {
  Planning planning;
  planning.job().deadline_h = 10;
  planning.job().owned = parse_peers("1xA10@onprem:eu").value();
  planning.job().purchases = {market::Purchase::spot};
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const MarketSpace& market = planning.last_market();
  const auto groups = read_plan_file("PLAN.yaml", to_plan_file(planning.job(), market, plan.value()));
  ASSERT_TRUE(groups.ok()) << groups.error().message;
  int spot = 0;
  for (const PlannedGroup& group : groups.value()) {
    const bool owned = group.purchase == market::Purchase::owned;
    spot += group.purchase == market::Purchase::spot;
    EXPECT_EQ(group.anchor, group.purchase != market::Purchase::spot);
    EXPECT_EQ(group.alternatives.size(), owned ? 0 : kMostAlternatives);
    for (const PlannedGroup& other : group.alternatives) {
      EXPECT_FALSE(other.site == group.site && other.gpu == group.gpu && other.purchase == group.purchase);
      EXPECT_TRUE(!group.anchor || other.purchase == market::Purchase::on_demand);
    }
  }
  EXPECT_GT(spot, 0);
}

TEST(Recommendation, lists_of_what_may_be_rented_do_not_concern_owned_hosts) {
  Planning planning;
  planning.job().owned = parse_peers("2xRTX8000@onprem:eu").value();
  planning.job().gpus = {"T4", "RTX8000"};
  planning.job().providers = {"gcp"};
  planning.job().regions = {"us"};
  planning.job().purchases = {market::Purchase::spot};
  planning.job().exclude = {"RTX8000"};
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(to_string(plan.value().chosen.peers), "2xRTX8000@onprem:eu");
  for (const std::string& note : planning.last_market().left_out)
    EXPECT_THAT(note, testing::Not(HasSubstr("no offer has")));
}

TEST(Recommendation, another_option_is_compared_in_dollars_and_hours) {
  const Option chosen{.counts = {1}, .hours = 7, .usd = 50};
  EXPECT_EQ(verdict_on({}, {.counts = {2}, .hours = 109, .usd = 30.33}, chosen),
            "19.67 $ less, 102 h longer");
  EXPECT_EQ(verdict_on({}, {.counts = {2}, .hours = 5.5, .usd = 60}, chosen), "10 $ more, 1.5 h shorter");
  EXPECT_EQ(verdict_on({}, {.counts = {2}, .hours = 7.0000676, .usd = 60}, chosen), "10 $ more");
  EXPECT_EQ(verdict_on({}, {.counts = {2}, .hours = 8, .usd = 50}, chosen), "1 h longer");
  EXPECT_EQ(verdict_on({}, {.counts = {2}, .hours = 7, .usd = 50}, chosen), "costs and takes as much");
}

TEST(Recommendation, what_is_excluded_is_not_rented) {
  Planning planning;
  planning.job().gpus = {};
  planning.job().exclude = {"azure", "K80", "gcp:us"};
  const MarketSpace market = planning.market().value();
  for (const Candidate& one : market.candidates) {
    EXPECT_NE(one.offer.provider, "azure");
    EXPECT_NE(one.offer.gpu, "K80");
    EXPECT_FALSE(one.offer.provider == "gcp" && one.offer.region == "us");
  }
  planning.job().exclude = {"spot", "on-demand"};
  EXPECT_THAT(planning.plan().error().message,
              HasSubstr("exclude spot, on-demand: without this limit there are"));
}

TEST(Recommendation, several_ways_to_buy_may_be_allowed) {
  Planning planning;
  planning.job().purchases = {market::Purchase::spot, market::Purchase::on_demand};
  std::set<market::Purchase> there;
  const MarketSpace market = planning.market().value();
  for (const Candidate& one : market.candidates) there.insert(one.offer.purchase);
  EXPECT_EQ(there.size(), 2U);
}

TEST(Recommendation, among_the_fastest_plans_it_takes_the_cheapest) {
  Planning planning;
  planning.job().goal = Goal::fastest;
  planning.job().mode = "delayed";  // where averaging is the limit, more machines are not faster
  planning.job().target_batch_size = 1024;
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const Option& chosen = plan.value().chosen;
  int fewer = 0;
  for (std::size_t i = 0; i < chosen.counts.size(); ++i) {
    if (chosen.counts[i] == 0) continue;
    std::vector<int> counts = chosen.counts;
    --counts[i];
    if (count_of(groups_of(planning.last_market(), counts)) == 0) continue;
    ++fewer;
    EXPECT_GT(evaluate(planning.job(), planning.last_market(), counts, "fewer").hours, chosen.hours * 1.001);
  }
  for (const Option& other : plan.value().others)
    EXPECT_TRUE(other.hours > chosen.hours * 1.001 || other.usd >= chosen.usd * 0.999)
        << to_string(other.peers);
  EXPECT_GT(fewer, 0);
}

TEST(Recommendation, among_plans_that_cost_nothing_it_takes_the_fastest) {
  Planning planning;
  planning.job().owned = parse_peers("4xT4@onprem:eu").value();
  planning.job().data.usd_per_gb = 0;
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(to_string(plan.value().chosen.peers), "4xT4@onprem:eu");
  EXPECT_EQ(plan.value().chosen.usd, 0);
}

TEST(Recommendation, no_alternative_is_far_slower_than_the_machine) {
  Planning planning;
  for (const double usd_per_h : {9.0, 9.5}) {
    market::Offer eight{.provider = "lambda",
                        .region = usd_per_h < 9.2 ? "us-west" : "us-east",
                        .vm_type = "gpu_8x_a100",
                        .gpu = "A100",
                        .gpus = 8,
                        .purchase = market::Purchase::on_demand,
                        .usd_per_h = usd_per_h};
    fill_in(eight);
    planning.offers().push_back(eight);
  }
  planning.job().gpus = {"A100", "A10"};
  planning.job().goal = Goal::fastest;
  planning.job().peers_max = 1;
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_EQ(plan.value().alternatives.size(), 1U);
  for (const auto& [planned, others] : plan.value().alternatives) {
    EXPECT_EQ(planning.last_market().candidates[planned].offer.gpus, 8);
    ASSERT_EQ(others.size(), 1U);
    EXPECT_EQ(planning.last_market().candidates[others.front()].offer.gpus, 8);
  }
}

TEST(Recommendation, a_machine_that_cannot_hold_the_model_is_left_out_by_name) {
  Planning planning;
  planning.model() = Models::built_in().find("RXLM").value();
  planning.job().gpus = {"M60", "T4"};
  const MarketSpace market = planning.market().value();
  for (const Candidate& one : market.candidates) EXPECT_EQ(one.offer.gpu, "T4");
  EXPECT_THAT(market.left_out,
              testing::Contains(
                  HasSubstr("offers left out: 2xM60, 4xM60, M60: 8 GiB of GPU memory, and RXLM needs 9.18")));
  planning.job().gpus = {"M60"};
  EXPECT_THAT(planning.plan().error().message, HasSubstr("M60: 8 GiB of GPU memory"));
  planning.job().gpus = {};
  planning.job().owned = parse_peers("1xM60@onprem:eu").value();
  EXPECT_THAT(planning.plan().error().message, HasSubstr("owned 1xM60@onprem:eu: M60: 8 GiB of GPU memory"));
}

TEST(Recommendation, the_first_alternative_costs_least_of_all_that_keep_the_deadline) {
  Planning planning;
  planning.job().deadline_h = 10;
  const auto plan = planning.plan();
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const MarketSpace& market = planning.last_market();
  const auto with = [&](std::size_t planned, std::size_t other) {
    std::vector<int> counts = plan.value().chosen.counts;
    --counts[planned];
    ++counts[other];
    return evaluate(planning.job(), market, counts, "changed");
  };
  ASSERT_FALSE(plan.value().alternatives.empty());
  for (const auto& [planned, others] : plan.value().alternatives) {
    const Option first = with(planned, others.front());
    for (std::size_t other = 0; other < market.candidates.size(); ++other) {
      const bool full = plan.value().chosen.counts[other] >= market.space.choices[other].most;
      const bool slow = market.candidates[other].samples_per_s < market.candidates[planned].samples_per_s / 2;
      if (other == planned || full || slow) continue;
      const Option one = with(planned, other);
      EXPECT_TRUE(one.hours > 10 || one.usd > first.usd * 0.999) << to_string(one.peers);
    }
  }
}

}  // namespace
}  // namespace tw::plan
