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
  EXPECT_EQ(two.error().message, "PLAN.yaml:3: a second document (after ---); expected one PLAN.yaml");
}

}  // namespace
}  // namespace tw::plan
