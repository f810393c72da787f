// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/plan_change.h"

#include <gtest/gtest.h>

namespace tw::plan {
namespace {

PlannedGroup t4_at(const char* site, int count, market::Purchase purchase) {
  return {.site = market::parse_site(site).value(),
          .vm_type = "n1",
          .gpu = "T4",
          .count = count,
          .purchase = purchase,
          .usd_per_h = 0.25,
          .anchor = purchase != market::Purchase::spot};
}

Change change_of(const char* site, int count, market::Purchase purchase) {
  return {.peers = {count, "T4", market::parse_site(site).value()}, .purchase = purchase, .usd_per_h = 0.5};
}

TEST(PlanChange, machines_are_added_dropped_and_new_ones_are_anchors_unless_they_are_spot) {
  using market::Purchase;
  const PlanFile plan{.peers = {t4_at("gcp:us", 3, Purchase::spot), t4_at("aws:us", 1, Purchase::spot)}};
  Replan replan;
  replan.drop = {change_of("gcp:us", 1, Purchase::spot), change_of("aws:us", 1, Purchase::spot)};
  replan.add = {change_of("gcp:us", 2, Purchase::on_demand), change_of("azure:us", 1, Purchase::spot)};
  const PlanFile after = changed(plan, replan);
  ASSERT_EQ(after.peers.size(), 3U);
  EXPECT_EQ(after.peers[0].count, 2);
  EXPECT_EQ(after.peers[0].purchase, Purchase::spot);
  EXPECT_TRUE(after.peers[1].anchor);
  EXPECT_EQ(after.peers[1].count, 2);
  EXPECT_FALSE(after.peers[2].anchor);
}

TEST(PlanChange, a_plan_of_an_earlier_version_is_read) {
  const auto read = read_plan("PLAN.yaml",
                              "codec: fp16\nstreams: 16\nmode: sync\ncheckpoint_interval_s: 900\n"
                              "fallback:\n  rule: on-demand\n"
                              "peers:\n  - {site: \"gcp:us\", gpu: T4, purchase: spot}\n");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().peers.size(), 1U);
  EXPECT_TRUE(read.value().settings.empty());
}

TEST(PlanChange, a_plan_that_was_written_is_read_as_it_was) {
  PlanFile plan{.run = "/runs/a b.yaml", .job = "job.yaml", .settings = {"training.mode=delayed"}};
  plan.peers = {t4_at("gcp:us", 3, market::Purchase::spot), t4_at("aws:us", 1, market::Purchase::on_demand)};
  plan.peers[0].alternatives = {t4_at("azure:us", 1, market::Purchase::spot),
                                t4_at("gcp:us", 1, market::Purchase::on_demand)};
  plan.peers[1].anchor = false;
  const auto read = read_plan("PLAN.yaml", to_text(plan));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().run, plan.run);
  EXPECT_EQ(read.value().job, plan.job);
  EXPECT_EQ(read.value().settings, plan.settings);
  EXPECT_EQ(read.value().peers, plan.peers);
}

TEST(PlanFile, errors_name_the_line) {
  const auto complaint = [](const char* group) {
    const auto read = read_plan("PLAN.yaml", std::string("peers:\n  - ") + group);
    return read.ok() ? "" : read.error().message;
  };
  EXPECT_EQ(complaint("{site: \"gcp:us\", gpu: T4, purchase: spot, role: boss}"),
            "PLAN.yaml:2: role boss: expected peer or anchor");
  EXPECT_EQ(complaint("{site: \"gcp:us\", gpu: T4, purchase: spot, count: 0}"),
            "PLAN.yaml:2: count 0: expected a whole number from 1 to 10000");
  EXPECT_EQ(complaint("{site: \"gcp:us\", gpu: T4, purchase: spot, count: three}"),
            "PLAN.yaml:2: count three: expected a whole number from 1 to 10000");
  EXPECT_EQ(complaint("{site: \"gcp:us\", gpu: T4, purchase: spot, cuont: 3}"),
            "PLAN.yaml:2: cuont: unknown key; did you mean \"count\"?");
  EXPECT_EQ(complaint("{site: \"gcp:us\", gpu: T4, purchase: spot, usd_per_h: nan}"),
            "PLAN.yaml:2: usd_per_h nan: expected dollars from 0 to 1e+06");
  EXPECT_EQ(complaint("{site: \"gcp:us\", purchase: spot}"),
            "PLAN.yaml:2: a machine without gpu; expected site, gpu and purchase");
  EXPECT_EQ(complaint("{site: \"gcp:us\", gpu: T4, purchase: spot, alternatives: 3}"),
            "PLAN.yaml:2: alternatives: expected a list of machines");
  EXPECT_EQ(complaint("{site: \"gcp:us\", gpu: T4, purchase: spot}\npeeers: 1"),
            "PLAN.yaml:3: peeers: unknown key; did you mean \"peers\"?");
  EXPECT_EQ(read_plan("PLAN.yaml", "peeers: []\n").error().message,
            "PLAN.yaml:1: peeers: unknown key; did you mean \"peers\"?");
  for (const char* other : {"training: {rounds: 4}\nprogram: {command: [a]}\n", "loss: 2\ngoal: cost\n"})
    EXPECT_EQ(read_plan("run.yaml", other).error().message,
              "run.yaml: no list of peers; expected a PLAN.yaml as `tw plan JOB.yaml` writes it");
}

}  // namespace
}  // namespace tw::plan
