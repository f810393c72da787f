// SPDX-License-Identifier: Apache-2.0
#include "monitor/export/chrome_trace_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tw::monitor {
namespace {

using Json = nlohmann::json;

constexpr double kTraceBegin = 1'767'225'600.5;

/// Peers 1 and 2 do a round; 2 computes longer, so that 1 waits for it.
Board two_peers() {
  Board board;
  board.run = "abc";
  board.peers = {{.peer = PeerId{1}, .site = "gcp:us-west1:a", .hardware = "T4"}, {.peer = PeerId{2}}};
  board.spans = {{.peer = PeerId{1},
                  .round = 7,
                  .state = PeerState::computing,
                  .from_s = kTraceBegin,
                  .to_s = kTraceBegin + 1},
                 {PeerId{1}, 7, PeerState::averaging, kTraceBegin + 1, kTraceBegin + 3, "peer 2: gradients"},
                 {.peer = PeerId{2},
                  .round = 7,
                  .state = PeerState::computing,
                  .from_s = kTraceBegin,
                  .to_s = kTraceBegin + 2},
                 {PeerId{2}, 7, PeerState::averaging, kTraceBegin + 2, kTraceBegin + 2.75, ""}};
  board.rounds = {{.round = 7, .begun_s = kTraceBegin, .committed_s = kTraceBegin + 3}};
  board.rounds[0].contributors = {PeerId{1}, PeerId{2}};
  return board;
}

std::vector<Json> of_kind(const Board& board, const std::string& kind) {
  std::vector<Json> found;
  const Json trace = Json::parse(chrome_trace(board));
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == kind) found.push_back(event);
  return found;
}

TEST(ChromeTrace, has_a_complete_event_for_each_span_in_microseconds_from_the_first) {
  const auto spans = of_kind(two_peers(), "X");
  ASSERT_EQ(spans.size(), 4U);
  EXPECT_EQ(spans[1]["name"], "averaging");
  EXPECT_EQ(spans[1]["pid"], 1);
  EXPECT_EQ(spans[1]["ts"], 1e6);
  EXPECT_EQ(spans[1]["dur"], 2e6);
  EXPECT_EQ(spans[1]["args"], (Json{{"round", 7}, {"why", "peer 2: gradients"}}));
  EXPECT_EQ(spans[2]["ts"], 0);
}

TEST(ChromeTrace, names_each_peer_with_its_site) {
  const auto names = of_kind(two_peers(), "M");
  ASSERT_EQ(names.size(), 4U);
  EXPECT_EQ(names[0]["args"]["name"], "peer 1 gcp:us-west1:a");
  EXPECT_EQ(names[1]["args"]["name"], "phases, T4");
  EXPECT_EQ(names[2]["args"]["name"], "peer 2");
}

TEST(ChromeTrace, leads_an_arrow_from_the_slowest_calculation_to_each_other_contributor) {
  const Board board = two_peers();
  const auto begins = of_kind(board, "s"), ends = of_kind(board, "f");
  ASSERT_EQ(begins.size(), 1U);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(begins[0]["pid"], 2);
  EXPECT_EQ(begins[0]["ts"], 2e6);
  EXPECT_EQ(ends[0]["pid"], 1);
  EXPECT_EQ(ends[0]["ts"], 3e6);
  EXPECT_EQ(ends[0]["bp"], "e");
  EXPECT_EQ(begins[0]["id"], ends[0]["id"]);
}

TEST(ChromeTrace, has_no_arrow_in_a_round_that_is_not_decided) {
  Board board = two_peers();
  board.rounds[0].committed_s.reset();
  EXPECT_TRUE(of_kind(board, "s").empty());
}

TEST(ChromeTrace, shows_interruptions_and_leaves_out_those_before_its_begin) {
  Board board = two_peers();
  board.interruptions = {{Interruption::Kind::joined, kTraceBegin - 5, 3, PeerId{2}, ""},
                         {Interruption::Kind::lost, kTraceBegin + 2.5, 7, PeerId{2}, "silent for 2.0 s"}};
  const auto instants = of_kind(board, "i");
  ASSERT_EQ(instants.size(), 1U);
  EXPECT_EQ(instants[0]["name"], "lost");
  EXPECT_EQ(instants[0]["ts"], 2.5e6);
  EXPECT_EQ(instants[0]["args"]["detail"], "silent for 2.0 s");
}

TEST(ChromeTrace, numbers_peers_whose_ids_no_viewer_takes) {
  Board board = two_peers();
  const PeerId large{std::uint64_t{1} << 31};
  board.peers[1].peer = board.spans[2].peer = board.spans[3].peer = board.rounds[0].contributors[1] = large;
  EXPECT_EQ(of_kind(board, "X")[2]["pid"], 2);
  EXPECT_EQ(of_kind(board, "M")[2]["args"]["name"], "peer 2147483648");
  EXPECT_EQ(of_kind(board, "s")[0]["pid"], 2);
}

TEST(ChromeTrace, is_a_trace_before_the_run_began_and_of_text_that_is_not_utf8) {
  EXPECT_EQ(Json::parse(chrome_trace({}))["traceEvents"], Json::array());
  Board board = two_peers();
  board.spans[0].why = "\xff";
  EXPECT_EQ(of_kind(board, "X")[0]["args"]["why"], "\xef\xbf\xbd");
}

}  // namespace
}  // namespace tw::monitor
