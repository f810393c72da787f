// SPDX-License-Identifier: Apache-2.0
#include "plan/model/throughput.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tw::plan {
namespace {

Workload workload(Pattern pattern) {
  return {.model = Models::built_in().find("RXLM").value(), .target_batch_size = 32768, .pattern = pattern};
}

Prediction prediction(const std::string& peers, const Workload& w) {
  return predict(w, parse_peers(peers).value()).value();
}

// Erben et al. 2024, section 3.
TEST(Granularity, tells_what_more_peers_bring) {
  EXPECT_NEAR(speed_up(1, 2), 1.333, 5e-4);
  EXPECT_NEAR(speed_up(10, 2), 1.833, 5e-4);
  EXPECT_EQ(speed_up(0.6, 2, true), 1) << "averaging is the limit";
  EXPECT_NEAR(speed_up(1.5, 2, true), 1.5, 1e-9);
}

TEST(Prediction, of_machines_with_several_gpus_says_once_what_they_ask_of_the_program) {
  const Prediction p = prediction("1x4xT4@gc:us;1x4xT4@gc:eu", workload(Pattern::tradewind));
  EXPECT_EQ(std::ranges::count(p.assumptions, several_gpus_text("4xT4", false)), 1);
}

TEST(Prediction, of_a_peer_alone_has_no_averaging) {
  const Prediction alone = prediction("1xA10@lambda:us-west", workload(Pattern::hivemind));
  EXPECT_NEAR(alone.throughput_sps.value, 292.16, 1e-9);
  EXPECT_EQ(alone.comm_s.value, 0);
  EXPECT_TRUE(std::isinf(alone.granularity.value));
  EXPECT_EQ(alone.limit, "calculation");
}

TEST(Prediction, is_round_samples_over_calculation_and_averaging) {
  const Prediction p = prediction("2xT4@gc:us;2xT4@gc:eu", workload(Pattern::hivemind));
  EXPECT_NEAR(p.throughput_sps.value, p.round_samples / (p.calc_s.value + p.comm_s.value), 1e-9);
  EXPECT_NEAR(p.granularity.value, p.calc_s.value / p.comm_s.value, 1e-9);
  EXPECT_LT(p.throughput_sps.low, p.throughput_sps.value);
  EXPECT_GT(p.throughput_sps.high, p.throughput_sps.value);
}

TEST(Prediction, says_what_limits) {
  EXPECT_EQ(prediction("2xT4@gc:us", workload(Pattern::hivemind)).limit, "calculation");
  EXPECT_EQ(prediction("1xRTX8000@onprem:eu;4xA10@lambda:us-west", workload(Pattern::hivemind)).limit,
            "stream lambda:us-west>onprem:eu");
}

TEST(Prediction, with_delay_averaging_hides_behind_calculation) {
  Workload w = workload(Pattern::tradewind);
  w.delayed = true;
  const Prediction p = prediction("4xT4@gc:us", w);
  EXPECT_GT(p.calc_s.value, p.comm_s.value);
  EXPECT_NEAR(p.throughput_sps.value, p.round_samples / p.calc_s.value, 1e-9);
}

TEST(Prediction, with_delay_calculation_hides_behind_longer_averaging) {
  Workload w = workload(Pattern::tradewind);
  w.delayed = true;
  w.target_batch_size = 256;
  const Prediction p = prediction("4xT4@gc:us", w);
  EXPECT_LT(p.calc_s.value, p.comm_s.value);
  EXPECT_NEAR(p.throughput_sps.value, p.round_samples / p.comm_s.value, 1e-9);
}

TEST(Prediction, of_averaging_is_the_less_certain_the_longer_the_way) {
  const auto factor = [](const char* peers) {
    const Estimate comm = prediction(peers, workload(Pattern::hivemind)).comm_s;
    return comm.high / comm.value;
  };
  EXPECT_NEAR(factor("4xT4@gc:us"), 1.09, 1e-9);
  EXPECT_NEAR(factor("2xT4@gc:us;2xT4@gc:eu"), 1.2, 1e-9);
  EXPECT_NEAR(factor("2xT4@gc:us;1xRTX8000@onprem:eu"), 1.3, 1e-9);
}

TEST(Prediction, machines_of_a_kind_err_alike_and_others_each_for_itself) {
  Workload w = workload(Pattern::hivemind);
  w.model = Models::built_in().find("CONV").value();  // both GPUs are measured equally well
  const auto factor = [&](const char* peers) {
    const Estimate speed = prediction(peers, w).local_sps;
    return speed.high / speed.value;
  };
  EXPECT_NEAR(factor("2xT4@gc:us;2xT4@gc:eu"), factor("4xT4@gc:us"), 1e-12);
  EXPECT_LT(factor("4xT4@gc:us;2xA10@lambda:us-west"), factor("4xT4@gc:us"));
}

TEST(Prediction, many_streams_beat_one_between_continents) {
  const std::string c8 = "2xT4@gc:us;2xT4@gc:eu;2xT4@gc:asia;2xT4@gc:aus";
  const double hivemind = prediction(c8, workload(Pattern::hivemind)).throughput_sps.value;
  Workload w = workload(Pattern::tradewind);
  const double many = prediction(c8, w).throughput_sps.value;
  w.streams = 1;
  EXPECT_GT(many, 1.5 * hivemind);
  EXPECT_GT(many, prediction(c8, w).throughput_sps.value);
}

TEST(Prediction, of_a_server_grows_with_its_peers_and_a_ring_does_not) {
  const auto comm = [](const char* peers, Pattern pattern) {
    return prediction(peers, workload(pattern)).comm_s.value;
  };
  EXPECT_GT(comm("16xT4@gc:us", Pattern::parameter_server),
            2 * comm("4xT4@gc:us", Pattern::parameter_server));
  EXPECT_LT(comm("16xT4@gc:us", Pattern::ring), 1.3 * comm("4xT4@gc:us", Pattern::ring));
}

// Between K sites 2 (K - 1) vectors cross; flat, with N = 8 peers in two sites, 2 x 16 / 8 x 2 in fp16.
TEST(Prediction, by_sites_fewer_bytes_cross) {
  const auto crossing = [](Pattern pattern) {
    const Prediction p = prediction("4xT4@gc:us;4xT4@gc:eu", workload(pattern));
    return p.sent_mb[0][1] + p.sent_mb[1][0];
  };
  EXPECT_NEAR(crossing(Pattern::tradewind), 2 * 2 * 16.0 / 8 * 2 * 560.1, 1e-6);
  EXPECT_NEAR(crossing(Pattern::tradewind_sites), 2 * 2 * 560.1, 1e-6);
}

TEST(Prediction, two_kinds_of_machines_at_a_site_are_one_site) {
  for (const Pattern pattern : {Pattern::tradewind, Pattern::tradewind_sites, Pattern::hivemind,
                                Pattern::ring, Pattern::parameter_server}) {
    const Prediction one = prediction("6xT4@gc:us;3xT4@gc:eu", workload(pattern));
    const Prediction two = prediction("2xT4@gc:us;4xA10@gc:us;3xT4@gc:eu", workload(pattern));
    EXPECT_NEAR(two.comm_s.value, one.comm_s.value, 1e-9) << to_string(pattern);
    EXPECT_NEAR(two.sent_mb_per_peer_round.value, one.sent_mb_per_peer_round.value, 1e-9)
        << to_string(pattern);
    EXPECT_NEAR(two.sent_mb[0][2] + two.sent_mb[1][2], one.sent_mb[0][1], 1e-9) << to_string(pattern);
  }
}

TEST(Prediction, of_a_model_whose_samples_fill_the_network_card_is_limited_by_data) {
  Workload work = workload(Pattern::tradewind);
  const Prediction small = prediction("2xT4@gc:us", work);
  EXPECT_EQ(small.limit, "calculation");
  EXPECT_EQ(small.reads.peer, "T4@gcp:us");
  EXPECT_NEAR(small.reads.mbit_s, 8 * work.model.data_mb_per_sample * small.local_sps.value / 2, 1e-9);
  EXPECT_NEAR(small.reads.requests_per_s, small.throughput_sps.value / work.model.microbatch, 1e-9);

  work.model.data_mb_per_sample = 100;
  work.samples_a_read = 1;
  const Prediction large = prediction("2xT4@gc:us", work);
  EXPECT_EQ(large.limit, "data");
  EXPECT_NEAR(large.reads.mbit_s, 800 * small.local_sps.value / 2, 1e-6);
  EXPECT_NEAR(large.reads.card_mbit_s, 6904, 1e-6);
  EXPECT_NEAR(large.local_sps.value, 2 * 6904 / 800.0, 1e-9);
  EXPECT_NEAR(large.reads.requests_per_s, large.throughput_sps.value, 1e-9);
}

TEST(Prediction, tells_what_was_not_measured) {
  const Prediction p = prediction("1xH100@aws:us-east-1;1xT4@vast:somewhere", workload(Pattern::tradewind));
  ASSERT_EQ(p.assumptions.size(), 2U);
  EXPECT_TRUE(p.assumptions[0].starts_with("RXLM on H100: "));
  EXPECT_TRUE(p.assumptions[1].starts_with("aws:us-east-1 to vast:somewhere: "));
}

TEST(Pattern, names_what_it_does_not_know) {
  EXPECT_EQ(parse_pattern("ring").value(), Pattern::ring);
  EXPECT_EQ(
      parse_pattern("star").error().message,
      "star: unknown pattern; expected one of tradewind, tradewind-sites, hivemind, ring, parameter-server");
}

}  // namespace
}  // namespace tw::plan
