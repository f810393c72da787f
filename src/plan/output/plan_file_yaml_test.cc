// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plan/advise/replan.h"

namespace tw::plan {
namespace {

TEST(PlanFile, of_two_documents_is_refused) {
  const std::string plan = "peers: [{site: \"gcp:us\", gpu: T4, purchase: spot}]\n";
  EXPECT_TRUE(read_plan("PLAN.yaml", plan));
  const auto two = read_plan("PLAN.yaml", plan + "---\n" + plan);
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().message, "PLAN.yaml:3: a second document (after ---); expected one");
}

TEST(PlanFile, takes_any_name_of_a_gpu) {
  const auto read = read_plan("PLAN.yaml", "peers: [{site: \"gcp:us\", gpu: Tesla T4, purchase: Spot}]\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read.value().peers.front().gpu, "T4");
}

TEST(PlanFile, with_a_key_twice_is_refused) {
  const std::string group = "{site: \"gcp:us\", gpu: T4, purchase: spot}";
  const auto complaint = [](const std::string& text) {
    const auto read = read_plan("PLAN.yaml", text);
    return read ? "" : read.error().message;
  };
  const std::string peers = "peers:\n  - " + group + "\n";
  EXPECT_EQ(complaint(peers + peers), "PLAN.yaml:3: peers: given twice");
  EXPECT_EQ(complaint("run: a.yaml\nrun: b.yaml\n" + peers), "PLAN.yaml:2: run: given twice");
  EXPECT_EQ(complaint("peers:\n  - {site: \"gcp:us\", gpu: T4, purchase: spot, count: 3, count: 5}\n"),
            "PLAN.yaml:2: count: given twice");
  EXPECT_EQ(
      complaint("peers:\n  - {site: \"gcp:us\", gpu: T4, purchase: spot, alternatives: [{site: \"a:b\", "
                "gpu: T4, gpu: A10, purchase: spot}]}\n"),
      "PLAN.yaml:2: gpu: given twice");
  EXPECT_EQ(complaint(peers + "settings: training.codec=fp16\n"),
            "PLAN.yaml:3: settings: expected a list such as [training.codec=fp16]");
  EXPECT_EQ(complaint("run: [a, b]\n" + peers), "PLAN.yaml:1: run: expected one value");
}

}  // namespace
}  // namespace tw::plan
