// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/replan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "market/catalog.h"
#include "plan/output/recommendation_text.h"

namespace tw::plan {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A run of ConvNextLarge with a deadline, under way with a plan.
class Underway {
 public:
  Underway() {
    workload_.model = Models::built_in().find("CONV").value();
    workload_.target_batch_size = job_.target_batch_size;
  }

  Job& job() { return job_; }

  ModelProfile& model() { return workload_.model; }

  std::vector<market::Offer>& offers() { return offers_; }

  /// Follows the best plan at this moment.
  void follow_best() {
    market_ = market({});
    const auto plan = recommend(job_, market_.value(), 0);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    expected_sps_ = plan.value().chosen.samples_per_s;
    plan_ = read_plan_file("PLAN.yaml", to_plan_file(job_, market_.value(), plan.value())).value();
    EXPECT_EQ(peers(), count_of(plan.value().chosen.peers));
  }

  void follow(std::vector<PlannedGroup> plan) { plan_ = std::move(plan); }

  int peers() const {
    int all = 0;
    for (const PlannedGroup& group : plan_) all += group.count;
    return all;
  }

  double expected_sps() const { return expected_sps_; }

  /// The first spot site of the plan lost all its machines so long ago.
  void lose_a_site(double hours) {
    for (const PlannedGroup& group : plan_) {
      if (group.purchase != market::Purchase::spot) continue;
      zones_ = {{.site = group.site, .sight = {.up = false, .age_h = hours}, .living = 0, .spells = {}}};
      missing_ = group.count;
      return;
    }
    FAIL() << "the plan has no spot machines";
  }

  /// A site of the plan that gives no further machine since so long, while one of its machines lives.
  void refuse_more(const market::Site& site, int living, double hours) {
    zones_ = {{.site = site, .sight = {.up = true, .age_h = 5}, .living = living, .spells = {}}};
    note_unanswered(zones_, {{.site = site, .sight = {.age_h = hours}, .spells = {}, .refused_h = hours}});
    missing_ = 1;
  }

  /// So many are gone, and the speed is that of so many peers; 0: not known.
  void lose(int machines, double measured_peers) {
    missing_ = machines;
    measured_peers_ = measured_peers;
  }

  void forget_on_demand() {
    std::erase_if(offers_, [](const market::Offer& one) { return one.purchase != market::Purchase::spot; });
  }

  void pay(const Paid& paid) { paid_ = paid; }

  const market::Site& lost_site() const { return zones_.front().site; }

  /// Replans after this much of the time and this share of the samples.
  Result<Replan> at(double hours, double share, double samples_per_s) {
    market_ = market(offers_of(plan_, job_, offers_));
    if (!market_) return market_.error();
    const RunProgress progress{.samples = share * job_.samples,
                               .elapsed_h = hours,
                               .peer_hours = hours * peers(),
                               .paid = paid_,
                               .measured = {.samples_per_s = samples_per_s, .peers = measured_peers_},
                               .peers = peers() - missing_,
                               .zones = zones_};
    return replan({job_, market_.value(), plan_, progress, 0});
  }

 private:
  Result<MarketSpace> market(const std::vector<market::Offer>& gone) {
    std::vector<market::Offer> all = offers_;
    all.insert(all.end(), gone.begin(), gone.end());
    return market_space({.job = job_,
                         .workload = workload_,
                         .offers = all,
                         .knowledge = knowledge_,
                         .tariffs = market::Tariffs::built_in(),
                         .under_way = true});
  }

  static Job ten_million_samples() {
    Job job;
    job.model = "CONV";
    job.target_batch_size = 32768;
    job.samples = 10e6;
    job.deadline_h = 20;
    job.gpus = {"T4", "A10"};
    job.peers_max = 16;
    return job;
  }

  Job job_ = ten_million_samples();
  Workload workload_;
  Knowledge knowledge_;
  std::vector<market::Offer> offers_ = market::built_in_offers();
  Result<MarketSpace> market_ = Error{"none"};
  std::vector<PlannedGroup> plan_;
  double expected_sps_ = 0;
  std::vector<ZoneSeen> zones_;
  int missing_ = 0;
  double measured_peers_ = 0;
  Paid paid_;
};

TEST(Replan, a_run_that_goes_as_planned_keeps_its_machines) {
  Underway run;
  run.follow_best();
  const auto next = run.at(10, 0.55, run.expected_sps());
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_EQ(next.value().advice, Advice::keep) << next.value().reason;
  EXPECT_THAT(next.value().add, IsEmpty());
  EXPECT_NEAR(next.value().speed_factor, 1, 0.1);
  EXPECT_GT(next.value().to_spare_h, 0);
  ASSERT_TRUE(next.value().policy);
  EXPECT_NE(next.value().policy->action, SpotAction::on_demand) << next.value().policy->reason;
  EXPECT_GT(next.value().usd_spent, 0);
  EXPECT_THAT(to_text(next.value()), HasSubstr("more than the plan's machines need"));
}

TEST(Replan, without_time_to_spare_what_is_added_is_on_demand) {
  Underway run;
  run.follow_best();
  const auto next = run.at(8, 0.2, run.expected_sps() / 2);
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_EQ(next.value().advice, Advice::change) << next.value().reason;
  EXPECT_LT(next.value().to_spare_h, 0);
  EXPECT_EQ(next.value().policy->action, SpotAction::on_demand);
  EXPECT_LT(next.value().speed_factor, 0.7);
  ASSERT_THAT(next.value().add, Not(IsEmpty()));
  for (const Change& one : next.value().add) EXPECT_NE(one.purchase, market::Purchase::spot);
  EXPECT_LE(next.value().proposed.risky_hours, 12);
  EXPECT_GT(next.value().current.risky_hours, 12);
  EXPECT_GT(next.value().switch_usd, 0);
}

TEST(Replan, a_replacement_avoids_the_zone_that_lost_its_machines_for_as_long_as_the_hazard_says) {
  Underway run;
  run.job().deadline_h = 40;
  run.follow_best();
  run.lose_a_site(0.1);
  const auto next = run.at(10, 0.4, 0);
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_EQ(next.value().advice, Advice::change) << to_text(next.value());
  EXPECT_THAT(next.value().reason, HasSubstr("has given no machine for 6 min: avoided for"));
  EXPECT_THAT(next.value().reason, HasSubstr(to_string(run.lost_site())));
  ASSERT_THAT(next.value().add, Not(IsEmpty()));
  for (const Change& one : next.value().add)
    EXPECT_FALSE(one.peers.site == run.lost_site() && one.purchase == market::Purchase::spot);
  EXPECT_THAT(to_json(next.value()), HasSubstr("\"avoided\": [\n"));
  run.lose_a_site(3);
  const auto later = run.at(10, 0.4, 0);
  ASSERT_TRUE(later.ok()) << later.error().message;
  EXPECT_THAT(later.value().avoided, IsEmpty());
}

TEST(Replan, a_replacement_keeps_all_living_machines) {
  Underway run;
  run.job().deadline_h = 400;
  const market::Site west = market::parse_site("gcp:us-west1").value();
  const market::Site central = market::parse_site("gcp:us-central1").value();
  const auto spot = market::Purchase::spot;
  run.follow({{.site = west, .gpu = "T4", .count = 1, .purchase = spot, .usd_per_h = 0.2},
              {.site = central, .gpu = "T4", .count = 3, .purchase = spot, .usd_per_h = 0.2}});
  run.lose_a_site(0.1);
  const auto next = run.at(10, 0.05, 0);
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_EQ(next.value().advice, Advice::change) << to_text(next.value());
  int added = 0, dropped = 0;
  for (const Change& one : next.value().add) added += one.peers.count;
  for (const Change& one : next.value().drop) {
    dropped += one.peers.count;
    EXPECT_EQ(one.peers.site, west);
  }
  EXPECT_EQ(added, 1);
  EXPECT_EQ(dropped, 1);
}

TEST(Replan, a_full_zone_is_left_by_what_it_does_not_give_while_its_machines_stay) {
  Underway run;
  run.job().deadline_h = 400;
  run.forget_on_demand();
  const market::Site west = market::parse_site("gcp:us-west1").value();
  run.follow({{.site = west, .gpu = "T4", .count = 3, .purchase = market::Purchase::spot, .usd_per_h = 0.2}});
  run.refuse_more(west, 2, 0.2);
  const auto next = run.at(10, 0.05, 0);
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_EQ(next.value().advice, Advice::change) << to_text(next.value());
  EXPECT_THAT(next.value().reason, HasSubstr("gcp:us-west1 has given no machine for 12 min"));
  ASSERT_EQ(next.value().drop.size(), 1U);
  EXPECT_EQ(next.value().drop[0].peers.count, 1);
  ASSERT_EQ(next.value().add.size(), 1U);
  EXPECT_FALSE(next.value().add[0].peers.site == west);
}

TEST(Replan, the_safety_net_turns_to_on_demand_machines_while_they_are_still_in_time) {
  Underway run;
  run.follow({{market::parse_site("gcp:us-west").value(), "n1", "T4", 4, market::Purchase::spot, 0.18}});
  const auto early = run.at(1, 0.5, 0);
  ASSERT_TRUE(early.ok()) << early.error().message;
  EXPECT_NE(early.value().advice, Advice::safety_net);
  // The time of the fastest on-demand machines for the rest, and a minute more.
  Underway on_demand;
  on_demand.job() = run.job();
  on_demand.job().goal = Goal::fastest;
  on_demand.job().purchases = {market::Purchase::on_demand};
  on_demand.job().samples = run.job().samples / 2;
  on_demand.follow_best();
  const double fastest_h = on_demand.job().samples / on_demand.expected_sps() / 3600;
  const auto late = run.at(run.job().deadline_h - fastest_h - 0.1, 0.5, 0);
  ASSERT_TRUE(late.ok()) << late.error().message;
  EXPECT_EQ(late.value().advice, Advice::safety_net) << to_text(late.value());
  for (const Change& one : late.value().add) EXPECT_EQ(one.purchase, market::Purchase::on_demand);
}

TEST(Replan, a_small_saving_is_not_worth_a_change_and_a_large_one_is) {
  Underway run;
  run.follow_best();
  const auto before = run.offers();
  const auto cheaper_elsewhere = [&](double factor) {
    std::vector<market::Offer> offers = before;
    const auto plan = run.at(10, 0.55, 0).value().current.peers;
    for (market::Offer& offer : offers)
      for (const PeerGroup& group : plan)
        if (offer.gpu == group.gpu && region_of(site_of(offer)) == region_of(group.site))
          offer.usd_per_h *= factor;
    run.offers() = offers;
    auto next = run.at(10, 0.55, 0);
    run.offers() = before;
    return next;
  };
  const auto slightly = cheaper_elsewhere(1.03);
  ASSERT_TRUE(slightly.ok()) << slightly.error().message;
  EXPECT_EQ(slightly.value().advice, Advice::keep) << slightly.value().reason;
  EXPECT_THAT(slightly.value().prices, Not(IsEmpty()));
  const auto much = cheaper_elsewhere(4);
  ASSERT_TRUE(much.ok()) << much.error().message;
  EXPECT_EQ(much.value().advice, Advice::change) << much.value().reason;
  EXPECT_THAT(much.value().drop, Not(IsEmpty()));
  EXPECT_LT(much.value().proposed.usd, much.value().current.usd);
  EXPECT_THAT(to_json(much.value()), HasSubstr("\"advice\": \"change\""));
}

TEST(Replan, the_state_of_a_large_model_costs_egress_where_it_is_sent_to_another_cloud) {
  const auto moved = [](double state_mb) {
    Underway run;
    run.model().state_mb = state_mb;
    run.follow_best();
    const auto plan = run.at(10, 0.55, 0).value().current.peers;
    for (market::Offer& offer : run.offers())
      for (const PeerGroup& group : plan)
        if (offer.provider == group.site.provider) offer.usd_per_h *= 6;
    return run.at(10, 0.55, 0).value();
  };
  const Replan small = moved(1);
  ASSERT_EQ(small.advice, Advice::change) << small.reason;
  EXPECT_LT(small.switch_state_usd, 0.1);
  const Replan large = moved(12000);
  ASSERT_EQ(large.advice, Advice::change) << large.reason;
  int started = 0;
  for (const Change& one : large.add) started += one.peers.count;
  EXPECT_GT(large.switch_state_usd, 0.01 * 12 * started) << to_text(large);
  EXPECT_THAT(to_text(large), HasSubstr("$ of it to send the state)"));
  EXPECT_EQ(moved(1e7).advice, Advice::keep) << "10 TB each";
}

TEST(Replan, the_measured_speed_is_compared_with_that_of_the_peers_that_made_it) {
  Underway run;
  run.job().deadline_h = 400;
  run.follow({{market::parse_site("gcp:us-west").value(), "n1-standard-8+T4", "T4", 4, market::Purchase::spot,
               0.18}});
  const auto factor = [&](int lost, double measured_peers, double samples_per_s) {
    run.lose(lost, measured_peers);
    return run.at(2, 0.05, samples_per_s).value().speed_factor;
  };
  const double all = factor(0, 4, 100);
  EXPECT_NEAR(factor(0, 0, 100), all, 1e-9);
  EXPECT_NEAR(factor(3, 4, 100), all, 1e-9) << "those that are gone made it, too";
  EXPECT_NEAR(factor(0, 2, 100), 2 * all, 0.1 * all) << "two of the four came later";
  EXPECT_NEAR(factor(3, 3.6, 90), all, 0.05 * all);
  run.lose(3, 3.6);
  EXPECT_THAT(to_text(run.at(2, 0.05, 90).value()),
              HasSubstr("measured 90 samples/s by 3.6 peers: machines"));
}

TEST(Replan, what_averaging_has_cost_is_estimated_for_the_peers_that_there_were) {
  Underway run;
  run.job().deadline_h = 400;
  run.follow(
      {{market::parse_site("gcp:us-west").value(), "n1-standard-8+T4", "T4", 2, market::Purchase::spot, 0.18},
       {market::parse_site("gcp:eu").value(), "n1-standard-8+T4", "T4", 2, market::Purchase::spot, 0.18}});
  run.pay({.priced_hours = 8, .machines_usd = 1});
  const double before = run.at(2, 0.05, 0).value().usd_estimated;
  EXPECT_GT(before, 0);
  run.lose(3, 0);
  EXPECT_EQ(run.at(2, 0.05, 0).value().usd_estimated, before);
}

TEST(Replan, own_hosts_are_no_longer_offered_only_once_the_job_names_them_no_more) {
  Underway run;
  const market::Site home = market::parse_site("onprem:eu").value();
  run.job().deadline_h = 0;
  run.job().owned = {{2, "T4", home}};
  run.follow({{home, "own", "T4", 2, market::Purchase::owned, 0}});
  EXPECT_THAT(run.at(2, 0.3, 0).value().prices, IsEmpty());
  run.job().owned.clear();
  EXPECT_THAT(run.at(2, 0.3, 0).value().prices, testing::ElementsAre(HasSubstr("no longer offered")));
}

TEST(Replan, machines_that_are_no_longer_offered_are_known_by_their_plan) {
  Underway run;
  run.follow({{market::parse_site("gcp:us-west").value(), "n1", "2xT4", 3, market::Purchase::spot, 0.3}});
  const auto next = run.at(2, 0.3, 0);
  ASSERT_TRUE(next.ok()) << next.error().message;
  ASSERT_THAT(next.value().prices, Not(IsEmpty()));
  EXPECT_THAT(next.value().prices.front(), HasSubstr("no longer offered"));
  EXPECT_EQ(count_of(next.value().current.peers), 3);
}

TEST(Replan, a_machine_without_a_price_does_not_count_as_free) {
  Underway run;
  run.follow({{market::parse_site("gcp:us-west").value(), "n1", "2xT4", 3, market::Purchase::spot, 0}});
  EXPECT_THAT(run.at(2, 0.3, 0).error().message,
              HasSubstr("3x2xT4@gcp:us-west of the plan: no longer offered, and without usd_per_h"));
  const auto spent = [&](double usd_per_h) {
    run.follow({{market::parse_site("gcp:us-west").value(), "n1-standard-8+T4", "T4", 3,
                 market::Purchase::spot, usd_per_h}});
    return run.at(2, 0.3, 0).value().usd_spent;
  };
  EXPECT_EQ(spent(0), spent(0.18)) << "the price of today stands in";
}

TEST(Replan, what_is_spent_is_what_the_logs_price_also_when_the_job_is_done) {
  Underway run;
  run.job().deadline_h = 400;
  run.follow(
      {{market::parse_site("gcp:us-west").value(), "n1-standard-8+T4", "T4", 3, market::Purchase::spot, 99}});
  run.pay({.priced_hours = 30, .machines_usd = 11, .averaging_usd = 2, .reads_usd = 0.5, .writes_usd = 0.25});
  for (const double share : {0.05, 1.0}) {
    const auto next = run.at(10, share, 0);
    ASSERT_TRUE(next.ok()) << next.error().message;
    EXPECT_NEAR(next.value().usd_spent, 13.75, 1e-9) << "whatever the plan's price is";
    EXPECT_EQ(next.value().usd_estimated, 0);
    EXPECT_THAT(to_text(next.value()), HasSubstr("13.75 $ spent; "));
  }
  run.pay({.priced_hours = 20, .machines_usd = 11, .averaging_usd = 2});
  const auto next = run.at(10, 1, 0);
  EXPECT_NEAR(next.value().usd_estimated, 10 * 99, 1e-6) << "ten hours at the plan's price";
  EXPECT_NEAR(next.value().usd_spent, 13 + 990, 1e-6);
  EXPECT_THAT(to_text(next.value()), HasSubstr("(990 of it estimated, without a price in the logs)"));
}

TEST(Replan, hours_without_a_price_count_at_that_of_the_groups_that_have_one) {
  Underway run;
  run.job().deadline_h = 400;
  const market::Site here = market::parse_site("gcp:us-west").value();
  run.follow({{here, "gone", "3xT4", 2, market::Purchase::spot, 0},
              {here, "n1-standard-8+T4", "T4", 3, market::Purchase::spot, 99}});
  run.pay({.priced_hours = 20, .machines_usd = 11, .averaging_usd = 2, .reads_usd = 0});
  const auto next = run.at(10, 1, 0);
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_EQ(next.value().advice, Advice::done);
  EXPECT_NEAR(next.value().usd_estimated, 30 * 99, 1e-6);
}

TEST(Replan, limits_that_are_gone_and_plans_that_are_none_are_named) {
  Underway run;
  run.follow_best();
  EXPECT_EQ(run.at(10, 1, 0).value().advice, Advice::done);
  EXPECT_THAT(run.at(21, 0.5, 0).error().message, HasSubstr("deadline_h 20: has passed 1 h ago"));
  run.job().budget_usd = 0.01;
  EXPECT_THAT(run.at(5, 0.5, 0).error().message, HasSubstr("budget_usd 0.01"));
  EXPECT_THAT(read_plan_file("p.yaml", "peers: []\n").error().message, HasSubstr("p.yaml"));
  EXPECT_THAT(read_plan_file("p.yaml", "peers:\n  - {site: \"gcp:us\", gpu: T4, count: 2, purchase: lease}\n")
                  .error()
                  .message,
              HasSubstr("p.yaml:2: purchase"));
}

}  // namespace
}  // namespace tw::plan
