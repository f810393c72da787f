// SPDX-License-Identifier: Apache-2.0
#include "explorer/explorer.h"

#include <gtest/gtest.h>

namespace tw::explorer {
namespace {

class Explorer : public testing::TestWithParam<World> {};

TEST_P(Explorer, finds_no_order_of_events_that_breaks_a_law) {
  const Findings findings = explore(GetParam().bounds);
  std::string story;
  for (const std::string& event : findings.story) story += "\n  " + event;
  EXPECT_EQ("", findings.broken) << "after" << story;
  EXPECT_EQ(findings.complete, GetParam().whole) << findings.states << " states, depth " << findings.depth;
  EXPECT_GT(findings.decisions, 1U) << "no other record could be decided";
  RecordProperty("states", std::to_string(findings.states));
  RecordProperty("depth", std::to_string(findings.depth));
  RecordProperty("events", std::to_string(findings.steps));
}

std::string name_of_world(const testing::TestParamInfo<World>& row) { return row.param.name; }

INSTANTIATE_TEST_SUITE_P(Worlds, Explorer, testing::ValuesIn(worlds()), name_of_world);

}  // namespace
}  // namespace tw::explorer
