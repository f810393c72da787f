// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "monitor/logs/event_log_json.h"
#include "world/event_table.h"

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

TEST_F(GoldenLog, has_every_kind_of_event_with_all_that_it_tells) {
  std::set<world::Phase> phases;
  std::set<std::pair<world::Phase, std::string>> told;
  for (const std::string& line : lines_) {
    const world::Event event = parse_json_line(line).value().event;
    phases.insert(event.phase);
    const auto note = [&](const std::string& name) {
      told.emplace(event.phase, name);
      told.emplace(event.phase, name.substr(0, name.find(':') + 1));
    };
    for (const auto& [name, value] : event.numbers) note(name);
    for (const auto& [name, text] : event.texts) note(name);
  }
  EXPECT_EQ(phases.size(), world::kPhaseNames.size());
  for (const world::Measurement& known : world::kMeasurements)
    EXPECT_TRUE(told.contains({known.phase, std::string(known.name)}))
        << name_of(known.phase) << " without " << known.name;
}

}  // namespace
}  // namespace tw::monitor
