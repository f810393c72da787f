// SPDX-License-Identifier: Apache-2.0
#include "plan/model/hivemind.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tw::plan {
namespace {

constexpr double kLongCalcS = 100;

HivemindLaw plain() { return {.stream_gain = 1, .on_premise_stream_gain = 1, .sent_factor = 1}; }

HivemindRound round_of(const std::string& peers, const HivemindLaw& law, double calc_s = kLongCalcS) {
  const ModelProfile model{.name = "net", .params_m = 100, .tensors = 10, .matchmaking_s = 5};
  return hivemind_round(model, parse_peers(peers).value(), market::NetworkProfile::built_in(), law, calc_s);
}

TEST(HivemindRound, of_one_peer_is_nothing) { EXPECT_EQ(round_of("1xT4@gc:us", plain()).comm_s, 0); }

TEST(HivemindRound, waits_for_the_floor_of_matchmaking) {
  EXPECT_DOUBLE_EQ(round_of("2xT4@gc:us", plain(), 3).matchmaking_s, 2);
  EXPECT_DOUBLE_EQ(round_of("2xT4@gc:us", plain(), 6).matchmaking_s, 0);
}

TEST(HivemindRound, sends_a_part_and_a_mean_to_each_other_peer) {
  EXPECT_DOUBLE_EQ(round_of("2xT4@gc:us", plain()).sent_mb, 200);
  EXPECT_DOUBLE_EQ(round_of("4xT4@gc:us", plain()).sent_mb, 300);
}

TEST(HivemindRound, one_stream_carries_its_window_in_a_round_trip) {
  const HivemindRound round = round_of("1xT4@gc:us;1xT4@gc:aus", plain());
  EXPECT_NEAR(round.wire_s, 200e6 / (117e6 / 8), 1e-6);
  EXPECT_EQ(round.slowest, "gcp:aus>gcp:us");
}

TEST(HivemindRound, all_streams_between_sites_are_waited_for) {
  const double one = round_of("1xT4@gc:us;1xT4@gc:eu", plain()).wire_s;
  const double four = round_of("2xT4@gc:us;2xT4@gc:eu", plain()).wire_s;
  EXPECT_NEAR(four, one / 2 * std::cbrt(4), 1e-9);
  EXPECT_NEAR(round_of("1xT4@gc:us;2xT4@gc:eu;1xA10@gc:us", plain()).wire_s, four, 1e-9);
}

TEST(HivemindRound, a_slow_stream_is_waited_for_more_than_quick_ones) {
  const double slow = round_of("1xT4@gc:us;1xT4@gc:aus", plain()).wire_s * 2 / 4;
  const HivemindRound round = round_of("1xT4@gc:us;1xT4@gc:aus;2xT4@gc:us", plain());
  EXPECT_NEAR(round.wire_s, slow * std::cbrt(3), 1e-9);
  const HivemindRound world = round_of("1xT4@gc:us;1xT4@gc:eu;1xT4@gc:aus", plain());
  EXPECT_EQ(world.slowest, "gcp:aus>gcp:eu");
}

TEST(HivemindRound, tensors_cost_with_the_root_of_the_other_peers) {
  HivemindLaw law = plain();
  law.exchange_s_per_tensor = 0.1;
  EXPECT_NEAR(round_of("2xT4@gc:us", law).exchange_s, 1, 1e-9);
  EXPECT_NEAR(round_of("5xT4@gc:us", law).exchange_s, 2, 1e-9);
}

TEST(HivemindRound, the_slowest_host_decides) {
  HivemindLaw law = plain();
  law.update_s = 1;
  law.lambda_host = 0.5;
  law.on_premise_host = 2;
  EXPECT_DOUBLE_EQ(round_of("2xA10@lambda:us-west", law).update_s, 0.5);
  EXPECT_DOUBLE_EQ(round_of("2xA10@lambda:us-west;1xT4@gc:us", law).update_s, 1);
  EXPECT_DOUBLE_EQ(round_of("2xA10@lambda:us-west;1xRTX8000@onprem:eu", law).update_s, 2);
}

TEST(HivemindRound, a_host_on_premise_is_slow_at_the_update_alone) {
  HivemindLaw law = plain();
  law.exchange_s_per_tensor = 0.1;
  law.lambda_host = law.on_premise_host = 0.5;
  EXPECT_NEAR(round_of("1xT4@gc:eu;1xRTX8000@onprem:eu", law).exchange_s, 1, 1e-9);
  EXPECT_NEAR(round_of("2xA10@lambda:us-west", law).exchange_s, 0.5, 1e-9);
}

TEST(HivemindRound, streams_from_premises_have_a_gain_of_their_own) {
  HivemindLaw law = plain();
  law.on_premise_stream_gain = 0.5;
  const char* premise = "1xT4@gc:eu;1xRTX8000@onprem:eu";
  const char* clouds = "1xT4@gc:eu;1xT4@gc:us";
  EXPECT_NEAR(round_of(premise, law).wire_s, 2 * round_of(premise, plain()).wire_s, 1e-9);
  EXPECT_EQ(round_of(clouds, law).wire_s, round_of(clouds, plain()).wire_s);
}

TEST(HivemindRound, processors_and_streams_work_side_by_side_in_part) {
  HivemindLaw law = plain();
  const char* peers = "1xT4@gc:us;1xT4@gc:eu";
  law.exchange_s_per_tensor = round_of(peers, law).wire_s / 10;
  const HivemindRound round = round_of(peers, law);
  EXPECT_NEAR(round.exchange_s, round.wire_s, 1e-9);
  EXPECT_NEAR(round.comm_s, std::cbrt(4) * round.wire_s, 1e-9);
}

TEST(HivemindRound, has_half_a_microbatch_too_many_of_each_peer) {
  EXPECT_EQ(hivemind_round_samples({.microbatch = 32}, 4, 1000), 1064);
}

TEST(HivemindRound, is_no_shorter_than_the_cards_need) {
  const HivemindRound round = round_of("8xT4@gc:us", plain());
  EXPECT_NEAR(round.comm_s, 7 * 50e6 / (6904e6 / 8), 1e-6);
}

TEST(HivemindLaw, names_the_row_that_is_wrong) {
  EXPECT_EQ(read_hivemind_law("law.csv", "constant,value\nupdates,3\n").error().message,
            "law.csv:2: constant updates: expected one of those in plan/model/hivemind.h");
  EXPECT_EQ(read_hivemind_law("law.csv", "constant,value\nupdate_s,3\n").error().message,
            "law.csv: 1 constants, expected 9");
}

}  // namespace
}  // namespace tw::plan
