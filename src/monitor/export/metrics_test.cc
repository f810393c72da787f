// SPDX-License-Identifier: Apache-2.0
#include "monitor/export/metrics.h"

#include <gmock/gmock.h>

#include <set>

#include "base/text/text_file.h"
#include "monitor/board/test_board.h"

namespace tw::monitor {
namespace {

using testing::HasSubstr;
using testing::Not;

Board living_board() {
  Board board = full_board();
  board.complete = false;
  board.ended.clear();
  board.dead_since_s.reset();
  return board;
}

TEST(Metrics, of_a_run_that_is_dead_name_no_delay_of_now) {
  Board board = living_board();
  const auto gauges = {"tw_delay_ratio", "tw_delay_usd_per_hour"};
  for (const char* gauge : gauges) EXPECT_THAT(metrics_text(board), HasSubstr(gauge));
  board.is_dead_since(1001);
  for (const char* gauge : gauges) EXPECT_THAT(metrics_text(board), Not(HasSubstr(gauge)));
  EXPECT_THAT(metrics_text(board), HasSubstr("tw_delay_seconds_total"));
}

TEST(Metrics, of_a_board_that_knows_everything_are_all_there) {
  const std::string text = metrics_text(full_board()) + metrics_text(living_board());
  for (const Metric& metric : metrics()) {
    EXPECT_THAT(text,
                HasSubstr("# TYPE " + std::string(metric.name) + " " + std::string(metric.type) + "\n"));
    EXPECT_THAT(text, HasSubstr("# HELP " + std::string(metric.name) + " "));
  }
  EXPECT_THAT(text, HasSubstr("\ntw_round 12\n"));
  EXPECT_THAT(text, HasSubstr("\ntw_last_commit_timestamp_seconds 996\n"));
  EXPECT_THAT(text, HasSubstr("\ntw_peers{state=\"lost\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\ntw_peer_up{peer=\"1\",site=\"aws:us-east-1:a\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\ntw_cost_usd_total{kind=\"egress\"} 0.125\n"));
  EXPECT_THAT(
      text,
      HasSubstr("\ntw_link_bytes_per_second{from=\"aws:us-east-1:a\",to=\"gcp:us-west1:b\"} 11687500\n"));
}

TEST(Metrics, that_are_not_known_are_left_out) {
  Board board;
  board.money.egress_usd.reset();  // of traffic without a price
  const std::string text = metrics_text(board);
  EXPECT_THAT(text, HasSubstr("tw_round 0\n"));
  for (const char* name : {"tw_loss", "tw_parameters_identical", "tw_budget_usd", "tw_peer_up",
                           "kind=\"machines\"", "kind=\"egress\"", "tw_samples_per_second"})
    EXPECT_THAT(text, Not(HasSubstr(name)));
}

TEST(Metrics, keep_to_the_members_of_the_run) {
  Board board = living_board();
  board.now_s = board.peers[1].since_s + 599;
  EXPECT_THAT(metrics_text(board), HasSubstr("tw_peer_up{peer=\"2\",site=\"\"} 0\n"));
  board.now_s = board.peers[1].since_s + 601;
  EXPECT_THAT(metrics_text(board), Not(HasSubstr("peer=\"2\"")));
}

TEST(Metrics, of_a_run_that_is_over_keep_the_peers_of_its_last_ten_minutes) {
  Board board = full_board();
  const double end_s = board.peers[0].heard_s;
  board.now_s = end_s + 7200;
  board.peers[1].since_s = end_s - 599;
  EXPECT_THAT(metrics_text(board), HasSubstr("tw_peer_up{peer=\"2\",site=\"\"} 0\n"));
  board.peers[1].since_s = end_s - 601;
  EXPECT_THAT(metrics_text(board), Not(HasSubstr("peer=\"2\"")));
}

TEST(Metrics, labels_cannot_break_the_text) {
  Board board;
  board.peers = {busy_peer()};
  board.peers[0].site = "a\"} 1\n\\x";
  EXPECT_THAT(metrics_text(board), HasSubstr("site=\"a\\\"} 1\\n\\\\x\"} 1\n"));
}

TEST(Metrics, are_named_as_prometheus_wants_it) {
  std::set<std::string_view> names;
  for (const Metric& metric : metrics()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_TRUE(metric.name.starts_with("tw_")) << metric.name;
    EXPECT_EQ(metric.type == "counter", metric.name.ends_with("_total")) << metric.name;
    EXPECT_FALSE(metric.help.ends_with('.')) << metric.name;
  }
}

/// The table of docs/watch.md, as it must be.
std::string table() {
  std::string text = "| metric | type | labels | meaning |\n|---|---|---|---|\n";
  for (const Metric& metric : metrics()) {
    text += "| `" + std::string(metric.name) + "` | " + std::string(metric.type) + " | " +
            std::string(metric.labels) + " | " + std::string(metric.help) + " |\n";
  }
  return text;
}

TEST(Metrics, stand_in_the_documentation) {
  const auto page = read_text_file(TW_SOURCE_DIR "/docs/watch.md", 1 << 20);
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_NE(page.value().find(table()), std::string::npos) << "docs/watch.md must hold\n" << table();
}

}  // namespace
}  // namespace tw::monitor
