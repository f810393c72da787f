// SPDX-License-Identifier: Apache-2.0
#include "sim/faults/faults.h"

#include <gtest/gtest.h>

#include <set>

namespace tw::sim {
namespace {

std::vector<FaultSpec> whole_menu(double chance) {
  std::vector<FaultSpec> menu;
  for (const FaultRow& row : fault_rows()) menu.push_back({.kind = row.kind, .chance = chance});
  return menu;
}

std::vector<Fault> draw(std::uint64_t seed, double chance) {
  Prng random(seed);
  return draw_faults(random, whole_menu(chance), {});
}

TEST(Faults, have_names_that_lead_back_to_them) {
  std::set<std::string> names;
  for (const FaultRow& row : fault_rows()) {
    EXPECT_EQ(fault_named(row.name), &row);
    EXPECT_EQ(name_of(row.kind), row.name);
    EXPECT_FALSE(row.meaning.empty()) << row.name;
    names.emplace(row.name);
  }
  EXPECT_EQ(names.size(), fault_rows().size());
  EXPECT_EQ(fault_named("earthquake"), nullptr);
}

TEST(Faults, are_drawn_by_their_chance) {
  EXPECT_EQ(draw(1, 1).size(), fault_rows().size());
  EXPECT_TRUE(draw(1, 0).empty());
}

TEST(Faults, are_the_same_for_the_same_seed) {
  const std::vector<Fault> a = draw(5, 0.5), b = draw(5, 0.5);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(to_string(a[i]), to_string(b[i]));
  EXPECT_NE(draw(5, 1).front().choice, draw(6, 1).front().choice);
}

TEST(Faults, wait_for_no_cue_in_the_last_rounds) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (const Fault& fault : draw(seed, 1)) {
      if (!fault.cue) continue;
      EXPECT_GE(fault.cue->round, 1U);
      EXPECT_LE(fault.cue->round + FaultTimes{}.calm_rounds, FaultTimes{}.rounds);
    }
  }
}

}  // namespace
}  // namespace tw::sim
