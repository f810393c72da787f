// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "monitor/logs/event_log_json.h"

namespace tw::monitor {
namespace {

/// tests/golden/events.jsonl: lines that peers wrote, of every kind of event.
class GoldenLog : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(std::string(TW_SOURCE_DIR) + "/tests/golden/events.jsonl");
    for (std::string line; std::getline(file, line);) lines_.push_back(line);
    ASSERT_FALSE(lines_.empty());
  }

  std::vector<std::string> lines_;
};

TEST_F(GoldenLog, is_read_and_written_again_to_the_same_bytes) {
  for (const std::string& line : lines_) {
    const auto entry = parse_json_line(line);
    ASSERT_TRUE(entry) << entry.error().message << ": " << line;
    EXPECT_EQ(to_json_line(entry.value()), line);
  }
}

/// The names of the facts of an event, those of others (slow:7) as their prefix.
std::set<std::string> names_in(const world::Event& event) {
  std::set<std::string> names;
  const std::string line = to_json_line({.writer = {}, .event = event});
  const auto note = [&](std::string_view name, const auto&, std::string_view) {
    const bool is_prefix = name.ends_with(':');
    const std::string key = fmt::format("\"{}{}", name, is_prefix ? "" : "\":");
    if (line.find(key) != std::string::npos) names.emplace(name);
  };
  std::visit([&](const auto& fact) { fact.fields(fact, note); }, event.fact);
  return names;
}

TEST_F(GoldenLog, has_every_kind_of_event_with_all_that_it_tells) {
  std::map<world::Phase, std::set<std::string>> told;
  for (const std::string& line : lines_) {
    const world::Event event = parse_json_line(line).value().event;
    told[event.phase()].merge(names_in(event));
  }
  EXPECT_EQ(told.size(), world::kPhaseNames.size());
  for (const auto& [phase, names] : told) {
    const auto expect = [&](std::string_view name, const auto&, std::string_view) {
      EXPECT_TRUE(names.contains(std::string(name))) << name_of(phase) << " without " << name;
    };
    std::visit([&](const auto& fact) { fact.fields(fact, expect); }, world::fact_of(phase));
  }
}

}  // namespace
}  // namespace tw::monitor
