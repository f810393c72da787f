// SPDX-License-Identifier: Apache-2.0
#include "measure/doctor/findings_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tw::measure {
namespace {

TEST(FindingsJson, has_all_that_is_printed) {
  const std::vector<Finding> findings{{"disk", Verdict::ok, "fast", ""},
                                      {"open files", Verdict::hurts, "64", "ulimit -n 1024"}};
  const auto json = nlohmann::json::parse(to_json(findings));
  EXPECT_EQ(json["hurts"], true);
  EXPECT_EQ(json["findings"].size(), 2U);
  EXPECT_EQ(json["findings"][0]["verdict"], "ok");
  EXPECT_EQ(
      json["findings"][1],
      (nlohmann::json{
          {"check", "open files"}, {"verdict", "will hurt"}, {"text", "64"}, {"remedy", "ulimit -n 1024"}}));
  EXPECT_EQ(nlohmann::json::parse(to_json({findings[0]}))["hurts"], false);
}

}  // namespace
}  // namespace tw::measure
