// SPDX-License-Identifier: Apache-2.0
#include "world/event_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace tw::monitor {
namespace {

/// The rows of the first table of docs/events.md by the phases that they are about.
std::map<std::string, std::string> documented_rows() {
  std::ifstream file(std::string(TW_SOURCE_DIR) + "/docs/events.md");
  std::map<std::string, std::string> rows;
  bool in_table = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| phase |")) in_table = true;
    if (in_table && line.empty()) break;
    if (!in_table) continue;
    const std::string phases = line.substr(0, line.find('|', 1));
    for (const std::string_view phase : world::kPhaseNames)
      if (phases.find(fmt::format("`{}`", phase)) != std::string::npos) rows[std::string(phase)] = line;
  }
  return rows;
}

TEST(EventTable, is_what_the_documentation_says_of_each_phase) {
  const std::map<std::string, std::string> rows = documented_rows();
  for (const world::Measurement& known : world::kMeasurements) {
    const auto row = rows.find(std::string(name_of(known.phase)));
    ASSERT_NE(row, rows.end()) << name_of(known.phase);
    EXPECT_NE(row->second.find(fmt::format("`{}", known.name)), std::string::npos)
        << "docs/events.md: the row of " << name_of(known.phase) << " lacks " << known.name;
  }
}

TEST(EventTable, has_a_row_for_every_phase_that_a_peer_writes) {
  const std::map<std::string, std::string> rows = documented_rows();
  for (const std::string_view phase : world::kPhaseNames)
    EXPECT_TRUE(phase == "kill" || rows.contains(std::string(phase))) << phase;
}

TEST(EventTable, knows_which_measurement_belongs_to_which_phase) {
  EXPECT_TRUE(is_described(world::Phase::commit, "comm_s"));
  EXPECT_FALSE(is_described(world::Phase::apply, "comm_s"));
  EXPECT_TRUE(is_described(world::Phase::traffic, "to:aws:us-east-1:a"));
  EXPECT_FALSE(is_described(world::Event{.phase = world::Phase::traffic, .numbers = {{"bytes", 1}}}));
  EXPECT_FALSE(is_described(world::Event{.phase = world::Phase::start, .texts = {{"colour", "red"}}}));
  EXPECT_TRUE(is_described(world::Event{.phase = world::Phase::start, .texts = {{"site", "onprem:eu"}}}));
}

}  // namespace
}  // namespace tw::monitor
