// SPDX-License-Identifier: Apache-2.0
#include "plan/output/prediction_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tw::plan {
namespace {

using Json = nlohmann::json;

struct Page {
  Prediction prediction;
  Json answers;
};

Page page_of(Pattern pattern, const std::string& peers, bool delayed = false) {
  const Workload workload{.model = Models::built_in().find("RXLM").value(),
                          .target_batch_size = 32768,
                          .pattern = pattern,
                          .delayed = delayed};
  const auto groups = parse_peers(peers).value();
  Page page{predict(workload, groups).value(), {}};
  const std::string fields = page_fields(workload, groups, page.prediction, Cost{}, Prices{});
  page.answers = Json::parse("{" + fields + "}")["answers"];
  return page;
}

/// Position of a value among those of a slider.
std::size_t at(const Json& values, double value) {
  return static_cast<std::size_t>(std::find(values.begin(), values.end(), value) - values.begin());
}

TEST(PredictionPage, answers_for_the_sliders_as_they_stand_as_the_prediction_says) {
  for (const bool delayed : {false, true}) {
    for (const Pattern pattern : {Pattern::tradewind, Pattern::tradewind_sites, Pattern::ring}) {
      const auto [prediction, answers] = page_of(pattern, "2xT4@gcp:us;3xT4@gcp:asia", delayed);
      const Json& rounds = answers["rounds"][at(answers["peers"], 5)][at(answers["bandwidth"], 1)];
      const Json& round = rounds[at(answers["tbs"], 32768)];
      EXPECT_NEAR(round[0].get<double>() / prediction.throughput_sps.value, 1, 1e-5);
      EXPECT_NEAR(round[1].get<double>() / prediction.round_s(), 1, 1e-5);
      EXPECT_NEAR(round[2].get<double>() / prediction.comm_s.value, 1, 1e-5);
      EXPECT_NEAR(round[3].get<double>() / prediction.granularity.value, 1, 1e-5);
    }
  }
}

TEST(PredictionPage, answers_that_more_bandwidth_shortens_averaging_and_more_peers_calculate_faster) {
  const Json answers = page_of(Pattern::tradewind, "2xT4@gcp:us;2xT4@gcp:asia").answers;
  const std::size_t wide = at(answers["bandwidth"], 5), usual = at(answers["bandwidth"], 1);
  const std::size_t four = at(answers["peers"], 4), eight = at(answers["peers"], 8);
  const auto round = [&](std::size_t peers, std::size_t bandwidth) {
    return answers["rounds"][peers][bandwidth][at(answers["tbs"], 32768)];
  };
  EXPECT_LT(round(four, wide)[2], round(four, usual)[2]);
  EXPECT_GT(round(eight, usual)[0], round(four, usual)[0]);
}

TEST(PredictionPage, answers_with_the_dollars_of_each_position) {
  const Workload workload{.model = Models::built_in().find("RXLM").value(), .target_batch_size = 32768};
  const auto usd_per_million = [&](int peers, const Json& answers) {
    const std::size_t n = at(answers["peers"], peers);
    const Json& usd = answers["usd"][n];
    const Json& round =
        answers["rounds"][n][at(answers["bandwidth"], 1)][at(answers["tbs"], workload.target_batch_size)];
    const double per_s = usd["machines"].get<double>() / 3600 +
                         usd["of_round"].get<double>() / round[1].get<double>() +
                         usd["of_sample"].get<double>() * round[0].get<double>();
    return 1e6 * per_s / round[0].get<double>();
  };
  const Json answers = page_of(Pattern::tradewind, "2xT4@gcp:us;2xT4@gcp:asia").answers;
  for (const int each : {2, 4}) {
    const auto peers = parse_peers(fmt::format("{0}xT4@gcp:us;{0}xT4@gcp:asia", each)).value();
    const Cost cost = cost_of(workload, peers, predict(workload, peers).value());
    ASSERT_GT(cost.egress_usd_per_h.value, 0);
    EXPECT_NEAR(usd_per_million(2 * each, answers) / cost.usd_per_million_samples.value().value, 1, 1e-4);
  }
}

TEST(PredictionPage, has_no_answers_of_hivemind_whose_law_knows_no_lines) {
  EXPECT_TRUE(page_of(Pattern::hivemind, "4xT4@gcp:us").answers.is_null());
}

TEST(PredictionPage, answers_for_a_lone_peer_without_averaging) {
  const Json answers = page_of(Pattern::tradewind, "1xT4@gcp:us").answers;
  const Json& round = answers["rounds"][at(answers["peers"], 1)][0][0];
  EXPECT_EQ(round[2], 0);
  EXPECT_TRUE(round[3].is_null());
}

}  // namespace
}  // namespace tw::plan
