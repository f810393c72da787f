// SPDX-License-Identifier: Apache-2.0
#include "monitor/web/web_routes.h"

#include <gmock/gmock.h>

#include "monitor/board/board_json.h"
#include "monitor/board/test_board.h"

namespace tw::monitor {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Routes : public testing::Test {
 protected:
  WebContent get(const std::string& path, const std::string& query = "") {
    return routes.content(path, query, now);
  }

  Board board = full_board();
  int made = 0;
  Instant now{};
  std::string trouble;  ///< why there is no board; empty: there is one
  WebRoutes routes{[this]() -> Result<Board> {
    ++made;
    if (!trouble.empty()) return Error{trouble};
    return board;
  }};
};

TEST_F(Routes, show_one_board_in_many_forms) {
  EXPECT_EQ(get("/board.json").body, to_json(board));
  EXPECT_EQ(get("/board.json").type, "application/json");
  EXPECT_THAT(get("/metrics").body, HasSubstr("\ntw_round 12\n"));
  EXPECT_EQ(get("/metrics").type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(get("/summary.json").body, HasSubstr("\"samples\": 6144"));
  EXPECT_THAT(get("/trace.json").body, HasSubstr("traceEvents"));
  EXPECT_THAT(get("/").body, HasSubstr("<html"));
  EXPECT_THAT(get("/").policy, HasSubstr("default-src 'none'"));
  EXPECT_TRUE(get("/events").events);
  for (const char* path :
       {"/", "/board.json", "/predict", "/metrics", "/summary.json", "/trace.json", "/events"})
    EXPECT_EQ(get(path).status, 200) << path;
}

TEST_F(Routes, have_no_numbers_where_there_is_no_board) {
  trouble = "no event log in out";
  for (const char* path : {"/board.json", "/predict", "/metrics", "/summary.json", "/trace.json"}) {
    EXPECT_EQ(get(path).status, 503) << path;
    EXPECT_EQ(get(path).body, "no event log in out\n") << path;
  }
  EXPECT_EQ(get("/board.json", "all").status, 503);
  EXPECT_EQ(routes.event_of("1", now), "");
  EXPECT_EQ(get("/").status, 200) << "the page says that it hears nothing";
  EXPECT_TRUE(get("/events").events) << "a browser that was refused asks no more";
  trouble.clear();
  now += std::chrono::seconds(1);
  EXPECT_EQ(get("/metrics").status, 200);
}

TEST_F(Routes, name_what_there_is_where_a_path_is_wrong) {
  for (const char* path : {"/nothing", "/board", "", "/events/", "/Board.json"}) {
    EXPECT_EQ(get(path).status, 404) << path;
    EXPECT_THAT(get(path).body, HasSubstr("there are /, /events, /board.json")) << path;
  }
}

TEST_F(Routes, refuse_a_query_that_asks_for_what_is_not_given) {
  EXPECT_EQ(get("/board.json", "all=1").status, 400);
  EXPECT_EQ(get("/board.json", "all=1").body,
            "/board.json?all=1: expected ?all, ?next, ?all&next or nothing after the path\n");
  EXPECT_EQ(get("/predict", "peers=4").body, "/predict?peers=4: expected nothing after the path\n");
  for (const char* path : {"/metrics", "/summary.json", "/trace.json"})
    EXPECT_EQ(get(path, "x=1").status, 200) << path << ": scrapers add their own";
  EXPECT_EQ(get("/", "token=old").status, 200) << "the page itself";
  EXPECT_EQ(get("/events", "token=old").status, 200);
}

TEST_F(Routes, answer_what_would_change_as_soon_as_two_rounds_are_measured) {
  board.rounds.clear();
  EXPECT_EQ(get("/predict").body, "null");
  now += std::chrono::seconds(1);
  for (Round round = 1; round <= 2; ++round)
    board.rounds.push_back({.round = round,
                            .committed_s = 1.0 * static_cast<double>(round),
                            .calc_s = 0.5,
                            .comm_s = 0.1,
                            .samples = 64,
                            .contributors = {PeerId{1}, PeerId{2}}});
  EXPECT_THAT(get("/predict").body, HasSubstr(R"("as_it_is":{"peers":2,"tbs":64})"));
}

TEST_F(Routes, make_a_board_once_a_second_however_many_ask) {
  for (int i = 0; i < 100; ++i) {
    get("/board.json");
    get("/metrics");
    routes.event_of("1", now);
  }
  EXPECT_EQ(made, 1);
  board.round = 13;
  now += std::chrono::seconds(1);
  EXPECT_THAT(get("/metrics").body, HasSubstr("\ntw_round 13\n"));
  EXPECT_EQ(made, 2);
}

TEST_F(Routes, tell_an_event_as_browsers_want_it) {
  EXPECT_EQ(routes.event_of("7", now), "event: board\nid: 7\ndata: " + to_json(board) + "\n\n");
}

TEST_F(Routes, send_an_extract_and_all_rounds_on_demand) {
  board.rounds.clear();
  for (Round round = 1; round <= 3000; ++round) board.rounds.push_back({.round = round});
  const auto extract = board_from_json(get("/board.json").body);
  const auto all = board_from_json(get("/board.json", "all").body);
  ASSERT_TRUE(extract && all);
  EXPECT_LT(extract.value().rounds.size(), 401U);
  EXPECT_EQ(all.value().rounds.size(), 3000U);
}

}  // namespace
}  // namespace tw::monitor
