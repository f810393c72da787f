// SPDX-License-Identifier: Apache-2.0
#include "peer/viewer.h"

#include <gmock/gmock.h>

#include "host/http.h"
#include "host/identity/authority.h"
#include "host/system/calendar.h"
#include "monitor/board/board_json.h"

namespace tw::peer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class View : public testing::Test {
 protected:
  void open(host::WebOptions options = {.address = "127.0.0.1:0"}) {
    auto opened = Viewer::open(loop, std::move(options), [this] {
      ++made;
      return board;
    });
    ASSERT_TRUE(opened) << opened.error().message;
    viewer = std::move(opened).value();
  }

  world::HttpAnswer get(world::HttpRequest request) {
    std::optional<Result<world::HttpAnswer>> answer;
    request.most_bytes = 1 << 20;
    http.request(std::move(request), [&](Result<world::HttpAnswer> came) { answer = std::move(came); });
    EXPECT_TRUE(loop.run_until([&] { return answer.has_value(); }, std::chrono::seconds(10)));
    if (answer && *answer) return answer->value();
    return {.body = answer ? answer->error().message : ""};
  }

  host::Loop loop;
  monitor::Board board{.run = "c0ffee", .round = 7};
  int made = 0;
  std::unique_ptr<Viewer> viewer;
  host::CurlHttp http{loop};
};

TEST_F(View, shows_the_board_as_it_is) {
  open();
  EXPECT_EQ(made, 0) << "nobody looks yet";
  EXPECT_EQ(viewer->how_to_watch(), viewer->url());
  const auto answer = get({.url = viewer->url() + "board.json"});
  EXPECT_EQ(answer.status, 200);
  const auto shown = monitor::board_from_json(answer.body);
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(shown.value(), board);
}

TEST_F(View, of_the_page_comes_with_its_policy) {
  open();
  const auto answer = get({.url = viewer->url()});
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.header("content-security-policy").value_or(""),
              HasSubstr("default-src 'none'; script-src"));
  EXPECT_EQ(answer.header("content-type"), "text/html; charset=utf-8");
}

TEST_F(View, tells_followers_boards_that_differ) {
  open();
  world::HttpRequest request{.url = viewer->url() + "events"};
  request.patience = std::chrono::milliseconds(2500);
  std::optional<std::string> ended;
  http.request(std::move(request),
               [&](Result<world::HttpAnswer> came) { ended = came ? "" : came.error().message; });
  ASSERT_TRUE(loop.run_until([&] { return ended.has_value(); }, std::chrono::seconds(10)));
  EXPECT_GE(made, 2);
  EXPECT_LE(made, 4);
}

TEST_F(View, says_goodbye_with_the_board_as_it_is) {
  open();
  viewer->say_goodbye();
  EXPECT_EQ(made, 0) << "nobody looks";
  EXPECT_EQ(get({.url = viewer->url() + "board.json?all"}).status, 200);
  board.complete = true;  // after what was shown a moment ago
  std::optional<Result<world::HttpAnswer>> last;
  http.request({.url = viewer->url() + "board.json?all&next"},
               [&](Result<world::HttpAnswer> came) { last = std::move(came); });
  for (int tries = 0; !last && tries < 1000; ++tries) {
    loop.run_until([&] { return last.has_value(); }, std::chrono::milliseconds(10));
    viewer->say_goodbye();
  }
  ASSERT_TRUE(last && *last);
  const auto shown = monitor::board_from_json(last->value().body);
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_TRUE(shown.value().complete);
}

TEST_F(View, answers_within_a_second_who_waits_for_the_next_board) {
  open();
  EXPECT_EQ(get({.url = viewer->url() + "board.json?next"}).status, 200);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(get({.url = viewer->url() + "board.json?nonsense&next"}).status, 400);
}

TEST_F(View, beyond_this_machine_wants_a_token_and_is_known_by_its_key) {
  const auto run = host::Authority::create("words");
  const auto token = [&](wire::Role role) {
    return run.issue(
        {.role = role, .from_unix_s = host::now_unix_s(), .expires_unix_s = host::now_unix_s() + 3600});
  };
  open({.address = "0.0.0.0:0", .token = token(wire::Role::peer)});
  const std::string how = viewer->how_to_watch();
  EXPECT_THAT(how, StartsWith(viewer->url() + "\n")) << "an address that can be clicked, and no placeholder";
  EXPECT_EQ(std::ranges::count(how, '\n'), 2);
  EXPECT_THAT(how, HasSubstr("tw token FOLDER --role observer"));
  const std::string pin = how.substr(how.find("sha256//"), 52);
  const std::string url = "https://127.0.0.1" + viewer->url().substr(viewer->url().rfind(':')) + "board.json";
  EXPECT_THAT(get({.url = url}).body, HasSubstr("certificate")) << "no authority knows it";
  world::HttpRequest request{.url = url, .pin = pin};
  EXPECT_EQ(get(request).status, 401);
  request.headers = {{"Authorization", "Bearer " + to_text(token(wire::Role::observer))}};
  EXPECT_EQ(get(request).status, 200);
  request.pin.replace(10, 4, "AAAA");
  EXPECT_EQ(get(request).status, 0) << "another key: the token is not sent";
}

}  // namespace
}  // namespace tw::peer
