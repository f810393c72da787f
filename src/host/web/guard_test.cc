// SPDX-License-Identifier: Apache-2.0
#include "host/web/guard.h"

#include <gmock/gmock.h>

#include "host/identity/authority.h"

namespace tw::host {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kNow = 1'800'000'000;
constexpr std::int64_t kViewerDay = 86400;

WebRequest get(const std::string& path, const std::string& host = "127.0.0.1:8080") {
  return {.method = "GET", .path = path, .query = "", .host = host};
}

/// 0: it is let through.
int status_of(const WebGuard& guard, const WebRequest& request) {
  const auto stopped = guard.stop(request, kNow);
  return stopped ? stopped->status : 0;
}

WebGuard guard_on(const std::string& host, std::vector<std::string> names = {}) {
  return WebGuard({.address = {host, 8080}, .names = std::move(names)});
}

wire::Token token_of(const Authority& run, wire::Role role, std::int64_t days = 1) {
  return run.issue({.role = role, .from_unix_s = kNow, .expires_unix_s = kNow + days * kViewerDay});
}

TEST(WebGuard, lets_the_names_of_this_machine_through) {
  const WebGuard guard = guard_on("127.0.0.1");
  for (const char* host : {"127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "127.0.0.2"})
    EXPECT_EQ(status_of(guard, get("/", host)), 0) << host;
}

TEST(WebGuard, refuses_the_name_of_another_host) {
  const WebGuard guard = guard_on("127.0.0.1", {"Watch.Example"});
  for (const char* host :
       {"", "evil.example", "10.0.0.1", "localhost.evil.example", "[", "127.0.0.1.evil.example"})
    EXPECT_EQ(status_of(guard, get("/", host)), 403) << host;
  EXPECT_EQ(status_of(guard, get("/", "watch.example:80")), 0);
}

TEST(WebGuard, takes_any_number_where_it_listens_everywhere_but_no_name) {
  const WebGuard guard = guard_on("0.0.0.0");
  EXPECT_EQ(status_of(guard, get("/", "192.0.2.7:8080")), 0);
  EXPECT_EQ(status_of(guard, get("/", "[2001:db8::1]:8080")), 0);
  EXPECT_EQ(status_of(guard, get("/", "evil.example")), 403);
}

TEST(WebGuard, on_one_address_takes_that_number_alone) {
  const WebGuard guard = guard_on("192.0.2.7");
  EXPECT_EQ(status_of(guard, get("/", "192.0.2.7")), 0);
  EXPECT_EQ(status_of(guard, get("/", "192.0.2.8")), 403);
  EXPECT_EQ(status_of(guard, get("/", "localhost")), 403);
}

TEST(WebGuard, refuses_paths_with_dots_and_signs) {
  const WebGuard guard = guard_on("127.0.0.1");
  for (const char* path : {"/../etc/passwd", "/a/../b", "/.git", "/%2e%2e/", "//x", "/a\\b", "http://evil/",
                           "", "/board.json\n", "/..", "/a..b"})
    EXPECT_EQ(status_of(guard, get(path)), 400) << path;
  EXPECT_EQ(status_of(guard, get("/board.json")), 0);
}

TEST(WebGuard, changes_nothing) {
  WebRequest request = get("/");
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "CONNECT"}) {
    request.method = method;
    EXPECT_EQ(status_of(guard_on("127.0.0.1"), request), 405) << method;
  }
  request.method = "HEAD";
  EXPECT_EQ(status_of(guard_on("127.0.0.1"), request), 0);
}

class GuardedRun : public testing::Test {
 protected:
  WebRequest with_token(const wire::Token& token) {
    WebRequest request = get("/", "192.0.2.7");
    request.authorization = "Bearer " + to_text(token);
    return request;
  }

  Authority run = Authority::create("words");
  WebGuard guard{{.address = {"192.0.2.7", 8443}, .viewers = Viewers(token_of(run, wire::Role::peer))}};
};

TEST_F(GuardedRun, is_seen_by_holders_of_its_tokens) {
  for (const wire::Role role : {wire::Role::observer, wire::Role::peer, wire::Role::anchor})
    EXPECT_EQ(status_of(guard, with_token(token_of(run, role))), 0) << name_of(role);
}

TEST_F(GuardedRun, knows_the_scheme_of_a_token_in_any_case) {
  WebRequest request = with_token(token_of(run, wire::Role::observer));
  request.authorization.replace(0, 6, "bEARER");
  EXPECT_EQ(status_of(guard, request), 0);
}

TEST_F(GuardedRun, keeps_what_else_the_address_asks_for) {
  const std::string token = "token=" + to_text(token_of(run, wire::Role::observer));
  for (const auto& [query, kept] :
       {std::pair{token, ""}, {"all&" + token, "?all"}, {token + "&a=1&b", "?a=1&b"}}) {
    WebRequest request = get("/board.json", "192.0.2.7");
    request.query = query;
    const auto welcome = guard.stop(request, kNow);
    ASSERT_TRUE(welcome);
    EXPECT_EQ(welcome->headers.at(0).second, "/board.json" + std::string(kept));
  }
}

TEST_F(GuardedRun, is_not_seen_without_a_token_or_with_a_wrong_one) {
  EXPECT_EQ(status_of(guard, get("/", "192.0.2.7")), 401);
  EXPECT_EQ(status_of(guard, with_token(token_of(Authority::create("words"), wire::Role::observer))), 401);
  EXPECT_EQ(status_of(guard, with_token(token_of(run, wire::Role::observer, 0))), 401);
  WebRequest request = get("/", "192.0.2.7");
  request.authorization = "Bearer nonsense";
  EXPECT_EQ(status_of(guard, request), 401);
}

TEST_F(GuardedRun, a_certificate_without_its_key_is_no_token) {
  wire::Token stolen = token_of(run, wire::Role::peer);  // peers show their certificates
  stolen.secret = token_of(run, wire::Role::observer).secret;
  const auto stopped = guard.stop(with_token(stolen), kNow);
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->status, 401);
  EXPECT_THAT(stopped->body, HasSubstr("do not fit together"));
}

TEST_F(GuardedRun, takes_the_token_in_the_address_for_a_cookie) {
  WebRequest request = get("/", "192.0.2.7");
  request.query = "x=1&token=" + to_text(token_of(run, wire::Role::observer));
  const auto welcome = guard.stop(request, kNow);
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->status, 303);
  ASSERT_EQ(welcome->headers.size(), 2U);
  EXPECT_EQ(welcome->headers[0], std::pair(std::string("Location"), std::string("/?x=1")));
  const std::string cookie = welcome->headers[1].second;
  EXPECT_THAT(cookie, HasSubstr("; Secure; HttpOnly; SameSite=Lax"));
  EXPECT_THAT(cookie, Not(HasSubstr(request.query.substr(10))));

  WebRequest next = get("/events", "192.0.2.7");
  next.cookie = "other=1; " + cookie.substr(0, cookie.find(';'));
  EXPECT_EQ(status_of(guard, next), 0);
  EXPECT_TRUE(guard.stop(next, kNow + kViewerDay)) << "it is good as long as the token";
  next.cookie.back() = next.cookie.back() == '0' ? '1' : '0';
  EXPECT_EQ(status_of(guard, next), 401);
  next.cookie = "tw_viewer_8443=";
  EXPECT_EQ(status_of(guard, next), 401);
}

TEST_F(GuardedRun, says_what_it_wants) {
  const auto stopped = guard.stop(get("/", "192.0.2.7"), kNow);
  ASSERT_TRUE(stopped);
  EXPECT_THAT(stopped->body, HasSubstr("tw token FOLDER --role observer"));
  EXPECT_THAT(stopped->headers, testing::Contains(testing::Pair("WWW-Authenticate", HasSubstr("Bearer"))));
}

TEST(WebRequest, finds_a_value_by_its_whole_key) {
  EXPECT_EQ(value_in("a=1&token=x&b=", "token"), "x");
  EXPECT_EQ(value_in("mytoken=x", "token"), "");
  EXPECT_EQ(value_in("", "token"), "");
  EXPECT_EQ(value_in("token", "token"), "");
}

}  // namespace
}  // namespace tw::host
