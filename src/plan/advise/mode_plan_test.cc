// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/mode_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "market/catalog.h"
#include "plan/output/recommendation_text.h"

namespace tw::plan {
namespace {

using testing::Contains;
using testing::HasSubstr;

/// ConvNextLarge on four machines of the user's own, all on links of one bandwidth.
class LinkedMachines {
 public:
  explicit LinkedMachines(double mbit_s) {
    workload_.model = Models::built_in().find("CONV").value();
    workload_.model.data_mb_per_sample = 0;
    job.model = "CONV";
    job.target_batch_size = kUsualBatch;
    job.samples = 5e6;
    job.goal = Goal::fastest;
    job.purchases = {market::Purchase::owned};
    job.owned = parse_peers("4xT4@onprem:eu").value();
    job.open = {"mode", "codec", "tbs", "fragments", "outer"};
    const double bytes_per_s = mbit_s * 1e6 / 8;
    network_.set(job.owned.front().site, job.owned.front().site,
                 {.rtt_s = 1e-3, .stream_bytes_per_s = bytes_per_s, .path_bytes_per_s = bytes_per_s});
  }

  Result<ModePlan> plan() {
    const Knowledge knowledge{.network = network_};
    return recommend_with_mode({.job = job,
                                .workload = workload_,
                                .knowledge = knowledge,
                                .market_of = [&](const Job& one) { return market(one, knowledge); },
                                .now_unix_s = 1'700'000'000});
  }

  Job job;

 private:
  Result<MarketSpace> market(const Job& one, const Knowledge& knowledge) {
    return market_space({.job = one,
                         .workload = in_mode_of(one, workload_),
                         .offers = {},
                         .knowledge = knowledge,
                         .tariffs = market::Tariffs::built_in()});
  }

  Workload workload_;
  market::NetworkProfile network_ = market::NetworkProfile::built_in();
};

TEST(ModePlan, streams_over_thin_links_and_says_what_sync_would_lose) {
  LinkedMachines machines(20);
  const auto planned = machines.plan();
  ASSERT_TRUE(planned.ok()) << planned.error().message;
  const ModePlan& made = planned.value();
  EXPECT_EQ(made.job.mode, "streaming");
  EXPECT_EQ(made.job.codec, "int4");
  EXPECT_GT(made.job.target_batch_size, kUsualBatch);
  EXPECT_EQ(count_of(made.plan.chosen.peers), 4);
  const std::string text = to_text(made.job, made.plan);
  EXPECT_THAT(text, HasSubstr("Mode streaming in int4, "));
  EXPECT_THAT(text,
              testing::ContainsRegex("  sync would wait 9[0-9] % of the time, delayed 9[0-9] %; streaming in "
                                     "int4 with [0-9]+ samples a round hides all of it: [0-9.]+ times"));
  EXPECT_THAT(text, HasSubstr("measured loss after equal samples"));
  EXPECT_THAT(text, HasSubstr("models with BatchNorm need buffers=\"local\""));
  for (const std::string& setting : settings_of(made.job))
    EXPECT_THAT(to_plan_file(made.job, made.market, made.plan), HasSubstr("  - \"" + setting + "\"\n"));
  EXPECT_THAT(settings_of(made.job), Contains("training.mode=streaming"));
  EXPECT_THAT(to_json(made.job, made.plan, "PLAN.yaml"), HasSubstr("\"reasons\": [\n"));
}

TEST(ModePlan, is_planned_for_what_it_chose) {
  LinkedMachines machines(20);
  const ModePlan chosen = machines.plan().value();
  machines.job = chosen.job;
  machines.job.open.clear();
  const ModePlan named = machines.plan().value();
  EXPECT_EQ(named.plan.chosen.samples_per_s, chosen.plan.chosen.samples_per_s);
  EXPECT_EQ(named.plan.chosen.round.seconds, chosen.plan.chosen.round.seconds);
}

TEST(ModePlan, stays_with_sync_where_links_are_fast) {
  LinkedMachines machines(10'000);
  machines.job.open.erase("tbs");
  machines.job.target_batch_size = 32768;
  const ModePlan made = machines.plan().value();
  EXPECT_EQ(made.job.mode, "sync");
  EXPECT_EQ(made.job.codec, "fp16");
  EXPECT_THAT(made.plan.mode_reasons.front(), HasSubstr("no other choice gains more than 5 %"));
  EXPECT_EQ(made.job.outer, "");
}

TEST(ModePlan, keeps_what_the_job_names_and_says_what_would_be_better) {
  LinkedMachines machines(1000);
  machines.job.open = {"outer"};
  const ModePlan made = machines.plan().value();
  EXPECT_EQ(made.job.mode, "sync");
  EXPECT_EQ(made.job.target_batch_size, kUsualBatch);
  EXPECT_THAT(made.plan.mode_reasons, Contains(testing::ContainsRegex(
                                          "^The job names mode: sync, codec: fp16, tbs: 512; that is kept\\. "
                                          "[a-z]+.* would hide all of it: ")));
}

// In sync averaging takes so long that a machine alone is fastest.
TEST(ModePlan, takes_more_machines_where_another_mode_has_use_for_them) {
  LinkedMachines machines(20);
  const ModePlan open = machines.plan().value();
  machines.job.open = {};
  const ModePlan sync = machines.plan().value();
  EXPECT_EQ(count_of(sync.plan.chosen.peers), 1);
  EXPECT_GT(open.plan.chosen.samples_per_s, 3.5 * sync.plan.chosen.samples_per_s);
}

TEST(ModePlan, leaves_what_misses_a_limit_for_a_mode_that_keeps_it) {
  LinkedMachines machines(20);
  const double hours = machines.plan().value().plan.chosen.hours;
  machines.job.deadline_h = 2 * hours;
  machines.job.goal = Goal::cheapest;
  const auto kept = machines.plan();
  ASSERT_TRUE(kept.ok()) << kept.error().message;
  EXPECT_EQ(kept.value().job.mode, "streaming");
  machines.job.open = {};
  EXPECT_FALSE(machines.plan().ok());
  machines.job.open = {"mode", "codec", "tbs"};
  machines.job.deadline_h = hours / 10;
  EXPECT_THAT(machines.plan().error().message, HasSubstr("deadline_h"));
}

/// A language model on rented machines, between which traffic costs most of the money.
Result<ModePlan> rented(const std::string& mode, Goal goal) {
  Job job;
  job.model = "RXLM";
  job.samples = 2e7;
  job.target_batch_size = kUsualBatch;
  job.deadline_h = 48;
  job.domains_min = 2;
  job.peers_max = 4;
  job.providers = {"aws", "azure"};
  job.goal = goal;
  job.open = {"tbs", "fragments", "outer"};
  if (mode.empty())
    job.open.insert("mode");
  else
    job.mode = mode;
  Workload workload;
  workload.model = Models::built_in().find("RXLM").value();
  const Knowledge knowledge;
  const auto offers = market::built_in_offers();
  const auto market_of = [&](const Job& one) {
    return market_space({.job = one,
                         .workload = in_mode_of(one, workload),
                         .offers = offers,
                         .knowledge = knowledge,
                         .tariffs = market::Tariffs::built_in()});
  };
  return recommend_with_mode({.job = job,
                              .workload = workload,
                              .knowledge = knowledge,
                              .market_of = market_of,
                              .now_unix_s = 1'700'000'000});
}

TEST(ModePlan, with_all_open_is_as_good_as_with_any_mode_named) {
  for (const Goal goal : {Goal::cheapest, Goal::fastest}) {
    const auto worth = [&](const std::string& mode) {
      const auto planned = rented(mode, goal);
      EXPECT_TRUE(planned.ok()) << planned.error().message;
      const Option& chosen = planned.value().plan.chosen;
      return goal == Goal::cheapest ? chosen.usd : chosen.hours;
    };
    const double open = worth("");
    for (const std::string mode : {"sync", "delayed", "streaming"})
      EXPECT_LE(open, 1.1 * worth(mode)) << mode << " " << to_string(goal);
  }
}

TEST(ModePlan, that_the_goal_decided_names_the_best_plan_of_what_costs_less_in_convergence) {
  const auto planned = rented("", Goal::cheapest);
  ASSERT_TRUE(planned.ok()) << planned.error().message;
  const std::string usd = "[0-9.,]+ h and [0-9.,]+ \\$";
  EXPECT_THAT(planned.value().plan.mode_reasons,
              Contains(testing::ContainsRegex("is nearly as fast on these machines, but its best plan is "
                                              "worse: [1-4]x.*, " +
                                              usd + ", to " + usd + " here")));
}

TEST(ModePlan, of_another_pattern_has_no_mode) {
  LinkedMachines machines(1000);
  machines.job.pattern = Pattern::ring;
  const auto made = machines.plan();
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(made.value().plan.mode_reasons.empty());
}

}  // namespace
}  // namespace tw::plan
