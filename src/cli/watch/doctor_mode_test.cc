// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/doctor_mode.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tw::cli {
namespace {

using testing::HasSubstr;

const market::Site kHere = market::site_at("onprem", "here"), kThere = market::site_at("onprem", "there");

plan::ModelProfile model() {
  plan::ModelProfile model;
  model.name = "own";
  model.params_m = 10;
  model.tensors = 20;
  model.accumulating["cpu"] = {.samples_per_s = 100};
  return model;
}

measure::Finding judged(double bytes_per_s) {
  return judge_mode(model(), kHere, {{kThere, 0.01, bytes_per_s, bytes_per_s}}, 1000).value();
}

TEST(DoctorMode, takes_sync_where_the_links_are_fast) {
  const measure::Finding found = judged(1e9);
  EXPECT_EQ(found.verdict, measure::Verdict::ok);
  EXPECT_THAT(found.text, HasSubstr("with 1000 samples a round of 2 peers on cpu in fp16, sync waits "));
  EXPECT_EQ(found.remedy, "");
}

TEST(DoctorMode, takes_one_that_overlaps_where_they_are_slow) {
  for (const auto& [bytes_per_s, mode] : {std::pair{8e6, "delayed"}, {1e6, "streaming"}}) {
    const measure::Finding found = judged(bytes_per_s);
    EXPECT_EQ(found.verdict, measure::Verdict::note);
    EXPECT_THAT(found.text, HasSubstr(std::string("; ") + mode));
    EXPECT_THAT(found.remedy, HasSubstr(std::string("set training.mode=") + mode + ", training.codec="));
  }
}

TEST(DoctorMode, divides_a_machines_bandwidth_among_its_links) {
  const auto waits = [](int peers) {
    std::vector<MeasuredLink> links;
    for (int i = 0; i < peers; ++i)
      links.push_back({market::site_at("onprem", fmt::format("there{}", i)), 0.01, 4e6, 4e6});
    const std::string text = judge_mode(model(), kHere, links, 1000 * (peers + 1)).value().text;
    return std::stod(text.substr(text.find("wait ") + 5));
  };
  EXPECT_GT(waits(1), 30);
  EXPECT_GT(waits(7), waits(1)) << "2 (N - 1) / N vectors through one card";
}

TEST(DoctorMode, says_what_it_would_have_to_know) {
  plan::ModelProfile unmeasured = model();
  unmeasured.accumulating.clear();
  const measure::Finding no_link = judge_mode(model(), kHere, {}, 1000).value();
  EXPECT_EQ(no_link.text, "not known: no link is measured");
  EXPECT_THAT(no_link.remedy, HasSubstr("--probe"));
  const std::vector<MeasuredLink> links = {{kThere, 0.01, 1e6, 1e6}};
  const measure::Finding no_speed = judge_mode(unmeasured, kHere, links, 1000).value();
  EXPECT_EQ(no_speed.verdict, measure::Verdict::note);
  EXPECT_THAT(no_speed.remedy, HasSubstr("tw profile"));
  EXPECT_FALSE(judge_mode(unmeasured, kHere, {}, 1000));
}

}  // namespace
}  // namespace tw::cli
