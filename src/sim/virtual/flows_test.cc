// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/flows.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

#include "base/prng.h"

namespace tw::sim {
namespace {

using namespace std::chrono_literals;

class FlowsTest : public testing::Test {
 protected:
  void start(const std::string& name, const Flow& flow) {
    flows.start(flow, [this, name] { ended[name] = to_seconds(scheduler.now() - Scheduler::kStart); });
  }

  void run() {
    while (scheduler.step()) {
    }
    EXPECT_EQ(flows.under_way(), 0U);
  }

  Scheduler scheduler;
  Flows flows{scheduler};
  std::map<std::string, double> ended;
};

TEST_F(FlowsTest, a_flow_alone_is_bound_by_its_cap_or_the_narrowest_link) {
  const int wide = flows.add_link(100);
  const int narrow = flows.add_link(20);
  start("capped", {.bytes = 50, .cap_bytes_per_s = 10});
  start("linked", {.bytes = 50, .links = {wide, narrow}});
  run();
  EXPECT_NEAR(ended["capped"], 5, 1e-6);
  EXPECT_NEAR(ended["linked"], 2.5, 1e-6);
}

TEST_F(FlowsTest, what_a_capped_flow_leaves_goes_to_the_others) {
  const int link = flows.add_link(100);
  start("slow", {.bytes = 100, .cap_bytes_per_s = 10, .links = {link}});
  start("a", {.bytes = 450, .links = {link}});
  start("b", {.bytes = 450, .links = {link}});
  run();
  EXPECT_NEAR(ended["slow"], 10, 1e-6);
  EXPECT_NEAR(ended["a"], 10, 1e-6);
  EXPECT_NEAR(ended["b"], 10, 1e-6);
}

TEST_F(FlowsTest, who_stays_gets_what_is_freed) {
  const int link = flows.add_link(100);
  start("short", {.bytes = 50, .links = {link}});
  start("long", {.bytes = 150, .links = {link}});
  run();
  EXPECT_NEAR(ended["short"], 1, 1e-6);
  EXPECT_NEAR(ended["long"], 2, 1e-6);
}

TEST_F(FlowsTest, a_later_flow_slows_those_under_way) {
  const int link = flows.add_link(100);
  start("early", {.bytes = 150, .links = {link}});
  scheduler.after(1s, [&] { start("late", {.bytes = 100, .links = {link}}); });
  run();
  EXPECT_NEAR(ended["early"], 2, 1e-6);
  EXPECT_NEAR(ended["late"], 2.5, 1e-6);
}

// The textbook case: two links in a row, one flow over both, one on each; the wide link's own flow takes
// the rest.
TEST_F(FlowsTest, shares_are_max_min_fair_over_several_links) {
  const int narrow = flows.add_link(10);
  const int wide = flows.add_link(100);
  start("both", {.bytes = 50, .links = {narrow, wide}});
  start("narrow", {.bytes = 50, .links = {narrow}});
  start("wide", {.bytes = 950, .links = {wide}});
  run();
  EXPECT_NEAR(ended["both"], 10, 1e-6);
  EXPECT_NEAR(ended["narrow"], 10, 1e-6);
  EXPECT_NEAR(ended["wide"], 10, 1e-6);
}

TEST_F(FlowsTest, a_flow_of_nothing_ends_at_once) {
  start("empty", {.bytes = 0, .cap_bytes_per_s = 1});
  run();
  EXPECT_NEAR(ended["empty"], 0, 1e-6);
}

TEST_F(FlowsTest, no_link_carries_more_than_it_can_and_none_that_is_wanted_idles) {
  Prng random(7);
  const int link = flows.add_link(1000);
  double bytes = 0;
  for (int i = 0; i < 200; ++i) {
    const double size = 1 + static_cast<double>(random.below(100));
    bytes += size;
    start(std::to_string(i), {.bytes = size, .links = {link}});
  }
  run();
  double last = 0;
  for (const auto& [name, when] : ended) last = std::max(last, when);
  EXPECT_NEAR(last, bytes / 1000, 1e-5);
}

}  // namespace
}  // namespace tw::sim
