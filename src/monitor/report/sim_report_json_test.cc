// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/sim_report_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tw::monitor {
namespace {

using Json = nlohmann::json;

TEST(SimReportJson, has_the_documented_keys) {
  const SimResults results{.seeds = 100,
                           .failures = {{7, "I4", "another \"mean\""}},
                           .events = 12'345'678'901,
                           .events_per_s = 5e5,
                           .simulated_s = 3600.5,
                           .faults = {{"kill", 12, 10}, {"join", 3, 3}},
                           .rare = {{"lead.early", 4}},
                           .kills_by_phase = {{"gather", 6}, {"commit", 4}}};
  const Json json = Json::parse(to_json(results));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"events", "events_per_s", "failures", "faults", "kills_by_phase",
                                            "rare", "seeds", "simulated_s"}));
  EXPECT_EQ(json["seeds"], 100);
  EXPECT_EQ(json["failures"],
            Json::array({{{"seed", 7}, {"checker", "I4"}, {"message", "another \"mean\""}}}));
  EXPECT_EQ(json["events"], 12'345'678'901);
  EXPECT_EQ(json["events_per_s"], 5e5);
  EXPECT_EQ(json["simulated_s"], 3600.5);
  EXPECT_EQ(json["faults"], Json::array({{{"name", "kill"}, {"drawn", 12}, {"fired", 10}},
                                         {{"name", "join"}, {"drawn", 3}, {"fired", 3}}}));
  EXPECT_EQ(json["rare"], Json::array({{{"name", "lead.early"}, {"taken", 4}}}));
  EXPECT_EQ(json["kills_by_phase"], Json({{"gather", 6}, {"commit", 4}}));
}

TEST(SimReportJson, has_empty_lists_where_nothing_happened) {
  const Json json = Json::parse(to_json({}));
  EXPECT_EQ(json["failures"], Json::array());
  EXPECT_EQ(json["faults"], Json::array());
  EXPECT_EQ(json["rare"], Json::array());
  EXPECT_EQ(json["kills_by_phase"], Json::object());
}

}  // namespace
}  // namespace tw::monitor
