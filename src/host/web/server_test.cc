// SPDX-License-Identifier: Apache-2.0
#include "host/web/server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <list>

#include "host/identity/authority.h"
#include "host/loop.h"
#include "host/system/calendar.h"
#include "host/tcp/admission/stranger.h"
#include "host/web/test_client.h"

namespace tw::host {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Reads = TestClient::Reads;

/// Bytes of memory that this process has in use. Under a sanitizer, which has memory of its own, 0.
std::uint64_t memory_in_use() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#endif
  std::uint64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * 4096;
}

int times(const std::string& text, const std::string& piece) {
  int count = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++count;
  return count;
}

class Web : public testing::Test {
 protected:
  WebAnswer answer(const WebRequest& request) {
    asked.push_back(request.path);
    if (request.path == "/events") return {.content_type = "text/event-stream", .follows = true};
    if (request.path == "/next") return {.body = "the next", .waits = !request.waited};
    if (request.path == "/") return {.content_type = "text/html", .body = "<p>hello</p>"};
    return refusal(404, "no such page");
  }

  void serve(WebOptions options = {.address = "127.0.0.1:0"}) {
    auto opened = WebServer::open(loop, std::move(options),
                                  [this](const WebRequest& request) { return answer(request); });
    ASSERT_TRUE(opened) << opened.error().message;
    server = std::move(opened).value();
  }

  TestClient& client(Reads reads = Reads::all, int receive_buffer = 0) {
    return clients.emplace_back(loop, server->url(), reads, receive_buffer);
  }

  bool soon(const std::function<bool()>& holds) { return loop.run_until(holds, 10s); }

  std::string server_address() const {
    const std::string rest = server->url().substr(server->url().find("//") + 2);
    return rest.substr(0, rest.find('/'));
  }

  /// A viewer at 127.0.0.host who follows the events.
  std::unique_ptr<Stranger> viewer_from(std::uint32_t host) {
    auto one = std::make_unique<Stranger>(server_address(), host);
    one->say("GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    return one;
  }

  /// What is answered to these bytes until the connection ends.
  std::string told(const std::string& bytes) {
    TestClient& one = client();
    one.send(bytes);
    EXPECT_TRUE(soon([&] { return one.ended; })) << one.received;
    return one.received;
  }

  Loop loop;
  std::vector<std::string> asked;
  std::unique_ptr<WebServer> server;
  std::list<TestClient> clients;
};

TEST_F(Web, answers_with_the_headers_that_protect_a_page) {
  serve();
  TestClient& one = client();
  one.get("/");
  ASSERT_TRUE(soon([&] { return one.received.ends_with("<p>hello</p>"); })) << one.received;
  EXPECT_THAT(one.received, StartsWith("HTTP/1.1 200 OK\r\n"));
  for (const char* header :
       {"Content-Type: text/html\r\n", "Content-Length: 12\r\n", "X-Content-Type-Options: nosniff\r\n",
        "Cache-Control: no-store\r\n", "Referrer-Policy: no-referrer\r\n",
        "Content-Security-Policy: default-src 'none'\r\n"})
    EXPECT_THAT(one.received, HasSubstr(header));
  EXPECT_FALSE(one.ended) << "a second request may follow";
  one.get("/");
  EXPECT_TRUE(soon([&] { return times(one.received, "200 OK") == 2; }));
}

TEST_F(Web, answers_head_without_a_body) {
  serve();
  TestClient& one = client();
  one.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(soon([&] { return one.received.ends_with("\r\n\r\n"); })) << one.received;
  EXPECT_THAT(one.received, HasSubstr("Content-Length: 12\r\n"));
}

TEST_F(Web, refuses_and_ends_what_it_does_not_serve) {
  serve();
  const std::string host = "Host: 127.0.0.1\r\n";
  EXPECT_THAT(told("POST / HTTP/1.1\r\n" + host + "\r\n"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(told("GET /../x HTTP/1.1\r\n" + host + "\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(told("GET http://evil/ HTTP/1.1\r\n" + host + "\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(told("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(told("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(told("GET / HTTP/1.1\r\n" + host + "Connection: Upgrade\r\nUpgrade: x\r\n\r\n"),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(asked, testing::IsEmpty());
  EXPECT_THAT(told("GET /x HTTP/1.1\r\n" + host + "\r\n"), StartsWith("HTTP/1.1 404 "));
}

TEST_F(Web, takes_no_body_no_long_line_and_nothing_that_is_no_http) {
  serve();
  const std::string begin = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  EXPECT_EQ(told(begin + "Content-Length: 5\r\n\r\nhello"), "");
  EXPECT_EQ(told(begin + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), "");
  EXPECT_EQ(told("GET /" + std::string(90'000, 'a') + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), "");
  EXPECT_EQ(told("\x16\x03\x01"), "");
  EXPECT_THAT(asked, testing::IsEmpty());
}

TEST_F(Web, takes_the_cookies_that_a_browser_has_of_all_ports_of_this_machine) {
  serve();
  const std::string end = " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n";
  EXPECT_THAT(told("GET /" + end + "Cookie: a=" + std::string(70'000, 'a') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(told("GET /" + std::string(70'000, 'a') + end + "\r\n"), StartsWith("HTTP/1.1 404 "));
  std::string fields;
  for (int i = 0; i < 400; ++i) fields += fmt::format("X-{}: 1\r\n", i);
  EXPECT_THAT(told("GET /" + end + fields + "\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(Web, refuses_a_megabyte_of_header_early) {
  serve();
  std::string headers = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  for (int i = 0; headers.size() < 1 << 20; ++i)
    headers += fmt::format("X-{}: {}\r\n", i, std::string(4000, 'x'));
  const std::uint64_t before = memory_in_use();
  EXPECT_EQ(told(headers + "\r\n"), "");
  EXPECT_EQ(told("GET / HTTP/1.1\r\nX: " + std::string(1 << 20, 'x') + "\r\n\r\n"), "");
  EXPECT_LT(memory_in_use(), before + (8 << 20));
  EXPECT_THAT(asked, testing::IsEmpty());
}

TEST_F(Web, ends_a_connection_that_says_nothing_or_speaks_slowly) {
  serve({.address = "127.0.0.1:0", .limits = {.request = 200ms}});
  TestClient& silent = client();
  TestClient& slow = client();
  slow.send("GET / HT");
  EXPECT_TRUE(soon([&] { return silent.ended && slow.ended; }));
  EXPECT_THAT(asked, testing::IsEmpty());
}

TEST_F(Web, closes_the_oldest_viewer_of_the_host_with_most_of_them_for_one_more) {
  serve({.address = "127.0.0.1:0", .limits = {.most_viewers = 2}});
  const auto elsewhere = viewer_from(2);
  TestClient& one = client();
  one.get("/events");
  ASSERT_TRUE(soon([&] { return server->followers() == 2; }));
  TestClient& two = client();
  two.get("/events");
  EXPECT_TRUE(soon([&] { return one.ended; }));
  server->publish("1", "data: one\n\n");
  EXPECT_TRUE(soon([&] { return times(two.received, "data: one") == 1; }));
  EXPECT_FALSE(elsewhere->ended());
}

TEST_F(Web, is_shown_to_a_viewer_whatever_strangers_do) {
  serve();
  std::list<Stranger> strangers;
  const auto more = [&](std::size_t count, const std::string& words) {
    for (std::size_t i = 0; i < count; ++i) strangers.emplace_back(server_address(), 2).say(words);
  };
  more(300, "");
  more(300, "GET / HT");
  TestClient& first = client();
  first.get("/events");
  EXPECT_TRUE(soon([&] { return server->followers() == 1; }));
  more(600, "GET / HT");
  server->publish("1", "data: one\n\n");
  EXPECT_TRUE(soon([&] { return times(first.received, "data: one") == 1; })) << "a viewer keeps its place";
}

TEST_F(Web, tells_followers_each_event_once) {
  serve();
  TestClient& early = client();
  early.get("/events");
  ASSERT_TRUE(soon([&] { return server->followers() == 1 && early.received.ends_with("\r\n"); }));
  EXPECT_THAT(early.received, HasSubstr("Content-Type: text/event-stream\r\n"));
  server->publish("1", "data: one\n\n");
  ASSERT_TRUE(soon([&] { return times(early.received, "data: one") == 1; }));
  TestClient& late = client();
  late.get("/events");
  TestClient& back = client();
  back.get("/events", "Last-Event-ID: 1\r\n");
  ASSERT_TRUE(soon([&] { return times(late.received, "data: one") == 1 && server->followers() == 3; }));
  server->publish("2", "data: two\n\n");
  const auto has_two = [](const TestClient& one) { return times(one.received, "data: two") == 1; };
  ASSERT_TRUE(soon([&] { return has_two(early) && has_two(late) && has_two(back); }));
  EXPECT_EQ(times(early.received, "data: one"), 1);
  EXPECT_EQ(times(back.received, "data: one"), 0) << "it was its last one";
}

TEST_F(Web, answers_with_the_next_event_who_waits_for_it) {
  serve();
  TestClient& one = client();
  one.get("/next");
  ASSERT_TRUE(soon([&] { return server->followers() == 1; }));
  EXPECT_EQ(one.received, "");
  server->publish("1", "");
  EXPECT_FALSE(server->flushed());
  ASSERT_TRUE(soon([&] { return one.received.ends_with("the next"); })) << one.received;
  EXPECT_TRUE(soon([&] { return server->flushed(); }));
  EXPECT_EQ(server->followers(), 0U);
}

TEST_F(Web, is_flushed_once_all_followers_have_the_last_event) {
  serve();
  TestClient& quick = client();
  quick.get("/events");
  ASSERT_TRUE(soon([&] { return server->followers() == 1 && server->flushed(); }));
  server->publish("1", "data: " + std::string(1 << 20, 'x') + "\n\n");
  EXPECT_FALSE(server->flushed());
  EXPECT_TRUE(soon([&] { return server->flushed(); }));
  client(Reads::nothing, 4096).get("/events");
  ASSERT_TRUE(soon([&] { return server->followers() == 2; }));
  EXPECT_FALSE(server->flushed());
}

TEST_F(Web, forgets_a_follower_that_went) {
  serve();
  client().get("/events");
  ASSERT_TRUE(soon([&] { return server->followers() == 1; }));
  clients.clear();
  int number = 0;
  EXPECT_TRUE(soon([&] {
    server->publish(std::to_string(++number), "data: x\n\n");
    loop.post([] {});
    return server->followers() == 0;
  }));
}

TEST_F(Web, lets_a_follower_know_that_the_line_holds) {
  serve({.address = "127.0.0.1:0", .limits = {.silence = 500ms}});
  TestClient& one = client();
  one.get("/events");
  EXPECT_TRUE(soon([&] { return times(one.received, ":\n\n") >= 1; })) << one.received;
}

TEST_F(Web, skips_events_for_a_slow_follower_and_cuts_it_off) {
  serve({.address = "127.0.0.1:0", .limits = {.write = 500ms}});
  client(Reads::nothing, 4096).get("/events");
  TestClient& quick = client();
  quick.get("/events");
  ASSERT_TRUE(soon([&] { return server->followers() == 2; }));
  const std::uint64_t before = memory_in_use();
  for (int i = 1; i <= 100; ++i) {
    server->publish(std::to_string(i), fmt::format("id: {}\ndata: {}\n\n", i, std::string(1 << 20, 'x')));
    const std::string begin = fmt::format("id: {}\n", i);
    ASSERT_TRUE(soon([&] { return times(quick.received, begin) == 1; }));
    quick.received.clear();
  }
  EXPECT_LT(memory_in_use(), before + (32 << 20));
  EXPECT_TRUE(soon([&] { return server->followers() == 1; })) << "the quick one stays";
}

TEST_F(Web, serves_two_hundred_followers_on_one_thread_within_bounded_memory) {
  serve();
  for (int i = 0; i < 100; ++i) client().get("/events");
  for (int i = 0; i < 100; ++i) client(Reads::nothing, 4096).get("/events");
  ASSERT_TRUE(soon([&] { return server->followers() == 200; }));
  const std::string event = "data: " + std::string(256 << 10, 'x') + "\n\n";
  std::uint64_t after_first = 0;
  for (int i = 1; i <= 20; ++i) {
    for (TestClient& one : clients) one.received.clear();
    server->publish(std::to_string(i), event);
    ASSERT_TRUE(soon([&] {
      return std::ranges::count_if(clients, [&](auto& one) { return one.received.ends_with("x\n\n\r\n"); }) ==
             100;
    }));
    if (i == 1) after_first = memory_in_use();
  }
  EXPECT_LT(memory_in_use(), after_first + (16 << 20));
  TestClient& another = client();
  another.get("/");
  EXPECT_TRUE(soon([&] { return another.received.ends_with("<p>hello</p>"); }));
}

TEST_F(Web, ends_all_connections_with_itself) {
  serve();
  TestClient& one = client();
  one.get("/events");
  ASSERT_TRUE(soon([&] { return server->followers() == 1; }));
  server.reset();
  EXPECT_TRUE(soon([&] { return one.ended; }));
}

TEST_F(Web, is_not_shown_beyond_this_machine_without_a_token) {
  const auto opened =
      WebServer::open(loop, {.address = "0.0.0.0:0"}, [](const WebRequest&) { return WebAnswer{}; });
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("0.0.0.0:0: beyond this machine a run is shown over TLS"));
  EXPECT_FALSE(WebServer::open(loop, {.address = "nonsense"}, [](const WebRequest&) { return WebAnswer{}; }));
}

class SecureWeb : public Web {
 protected:
  void SetUp() override {
    serve({.address = "0.0.0.0:0", .token = token(wire::Role::peer)});
    ASSERT_THAT(server->url(), StartsWith("https://"));
  }

  wire::Token token(wire::Role role) {
    return run.issue({.role = role, .from_unix_s = now_unix_s(), .expires_unix_s = now_unix_s() + 86400});
  }

  TestClient& secure_client() {
    const std::string port = server->url().substr(server->url().rfind(':'));
    return clients.emplace_back(loop, "https://127.0.0.1" + port);
  }

  Authority run = Authority::create("words");
};

TEST_F(SecureWeb, shows_the_run_to_an_observer_and_to_nobody_else) {
  TestClient& stranger = secure_client();
  stranger.get("/");
  ASSERT_TRUE(soon([&] { return stranger.ended; }));
  EXPECT_THAT(stranger.received, StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(asked, testing::IsEmpty());
  TestClient& observer = secure_client();
  observer.get("/", "Authorization: Bearer " + to_text(token(wire::Role::observer)) + "\r\n");
  EXPECT_TRUE(soon([&] { return observer.received.ends_with("<p>hello</p>"); })) << observer.received;
}

TEST_F(SecureWeb, events_come_with_the_cookie_of_the_first_visit) {
  TestClient& first = secure_client();
  first.get("/?token=" + to_text(token(wire::Role::observer)));
  ASSERT_TRUE(soon([&] { return first.received.ends_with("\r\n\r\n"); }));
  EXPECT_THAT(first.received, StartsWith("HTTP/1.1 303 "));
  const std::size_t at = first.received.find("Set-Cookie: ") + 12;
  const std::string cookie = first.received.substr(at, first.received.find(';', at) - at);
  TestClient& next = secure_client();
  next.get("/events", "Cookie: " + cookie + "\r\n");
  ASSERT_TRUE(soon([&] { return server->followers() == 1; })) << next.received;
  server->publish("1", "data: one\n\n");
  EXPECT_TRUE(soon([&] { return times(next.received, "data: one") == 1; }));
}

TEST_F(SecureWeb, has_the_same_key_after_a_restart_and_another_one_for_another_token) {
  const wire::Token own = token(wire::Role::peer);
  std::vector<std::string> pins;
  for (const wire::Token& one : {own, own, token(wire::Role::peer)}) {
    serve({.address = "0.0.0.0:0", .token = one});
    pins.push_back(server->pin());
  }
  EXPECT_THAT(pins[0], StartsWith("sha256//"));
  EXPECT_EQ(pins[0], pins[1]);
  EXPECT_NE(pins[0], pins[2]);
}

TEST_F(SecureWeb, waits_for_no_handshake_for_ever) {
  serve({.address = "0.0.0.0:0", .token = token(wire::Role::peer), .limits = {.request = 200ms}});
  const std::string port = server->url().substr(server->url().rfind(':'));
  TestClient& silent = clients.emplace_back(loop, "http://127.0.0.1" + port);
  EXPECT_TRUE(soon([&] { return silent.ended; }));
}

}  // namespace
}  // namespace tw::host
