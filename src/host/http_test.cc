// SPDX-License-Identifier: Apache-2.0
#include "host/http.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <asio.hpp>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "host/loop.h"
#include "host/system/temporary_folder.h"

namespace tw::host {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using world::HttpAnswer;
using world::HttpRequest;

constexpr Duration kSoon = 20s;

/// Takes connections on the loop of the test, and answers each by what its request asks for; a path without
/// an answer hangs.
class Server {
 public:
  explicit Server(Loop& loop)
      : acceptor_(loop.context(), {asio::ip::address_v4::loopback(), 0}), loop_(loop) {
    accept();
  }

  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()) + path;
  }

  std::map<std::string, std::string> answers;  ///< path: the whole answer
  std::vector<std::string> requests;

 private:
  struct Client {
    explicit Client(asio::io_context& context) : socket(context) {}

    asio::ip::tcp::socket socket;
    std::string request;
    std::array<char, 4096> part{};
  };

  void accept() {
    auto client = std::make_shared<Client>(loop_.context());  // owners: the operations under way
    acceptor_.async_accept(client->socket, [this, client](std::error_code error) {
      if (error) return;
      read(client);
      accept();
    });
  }

  // owners: the operations under way
  void read(const std::shared_ptr<Client>& client) {
    client->socket.async_read_some(asio::buffer(client->part),
                                   [this, client](std::error_code error, std::size_t got) {
                                     if (error) return;
                                     client->request.append(client->part.data(), got);
                                     answer(client);
                                   });
  }

  // owners: the operations under way
  void answer(const std::shared_ptr<Client>& client) {
    const std::string& request = client->request;
    const std::size_t end = request.find("\r\n\r\n");
    const std::size_t body = request.find("Content-Length: ");
    const std::size_t wanted = body == std::string::npos ? 0 : std::stoul(request.substr(body + 16));
    if (end == std::string::npos || request.size() < end + 4 + wanted) return read(client);
    requests.push_back(request);
    const std::size_t begin = request.find(' ') + 1;
    const auto found = answers.find(request.substr(begin, request.find(' ', begin) - begin));
    if (found == answers.end()) {
      hanging_.push_back(client);
    } else {
      asio::write(client->socket, asio::buffer(found->second));
    }
  }

  asio::ip::tcp::acceptor acceptor_;
  Loop& loop_;
  std::deque<std::shared_ptr<Client>> hanging_;  // owners: this
};

class HttpDoor : public testing::Test {
 protected:
  void ask(HttpRequest request) {
    const std::size_t number = answered.size();
    answered.emplace_back();
    http->request(std::move(request),
                  [this, number](Result<HttpAnswer> answer) { answered[number] = answer; });
  }

  Result<HttpAnswer> answer_to(HttpRequest request) {
    const std::size_t number = answered.size();
    ask(std::move(request));
    EXPECT_FALSE(answered[number]) << "not from inside of the call";
    EXPECT_TRUE(loop.run_until([&] { return answered[number].has_value(); }, kSoon));
    return answered[number].value_or(Error{"nothing came"});
  }

  Loop loop;
  Server server{loop};
  std::unique_ptr<CurlHttp> http = std::make_unique<CurlHttp>(loop);
  std::vector<std::optional<Result<HttpAnswer>>> answered;
};

TEST(AuthorityFile, is_the_one_that_the_user_names_or_that_of_the_system) {
  EXPECT_EQ(authority_file([](const std::string&) { return std::string("/my/authorities.pem"); }),
            "/my/authorities.pem");
  const std::string systems = authority_file([](const std::string&) { return std::string(); });
  EXPECT_TRUE(systems.empty() || std::filesystem::file_size(systems) > 0) << systems;
}

TEST_F(HttpDoor, sends_method_headers_and_body_and_gives_the_whole_answer) {
  server.answers["/a?b=c"] = "HTTP/1.1 401 No\r\nETag: \"e1\"\r\nContent-Length: 4\r\n\r\nbody";
  const auto answer = answer_to({.method = "POST",
                                 .url = server.url("/a?b=c"),
                                 .headers = {{"Metadata", "true"}},
                                 .body = "{\"x\":1}"});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer.value().status, 401);
  EXPECT_EQ(answer.value().body, "body");
  EXPECT_EQ(answer.value().header("etag"), "\"e1\"");
  EXPECT_EQ(answer.value().header("Date"), std::nullopt);
  ASSERT_EQ(server.requests.size(), 1U);
  EXPECT_THAT(server.requests[0], testing::StartsWith("POST /a?b=c HTTP/1.1\r\n"));
  EXPECT_THAT(server.requests[0], HasSubstr("\r\nMetadata: true\r\n"));
  EXPECT_THAT(server.requests[0], testing::EndsWith("\r\n\r\n{\"x\":1}"));
}

TEST_F(HttpDoor, puts_without_a_body) {
  server.answers["/token"] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nAQAEA";
  const auto answer = answer_to({.method = "PUT", .url = server.url("/token")});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer.value().body, "AQAEA");
  EXPECT_THAT(server.requests[0], testing::StartsWith("PUT /token HTTP/1.1\r\n"));
  EXPECT_THAT(server.requests[0], HasSubstr("Content-Length: 0\r\n"));
}

TEST_F(HttpDoor, asks_for_a_path_as_it_is) {
  server.answers["/x/../y"] = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny";
  EXPECT_EQ(answer_to({.url = server.url("/x/../y")}).value().body, "y");
}

TEST_F(HttpDoor, answers_others_while_one_hangs) {
  server.answers["/quick"] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  ask({.url = server.url("/hangs"), .patience = 60s});
  ASSERT_TRUE(loop.run_until([&] { return !server.requests.empty(); }, kSoon));
  EXPECT_EQ(answer_to({.url = server.url("/quick")}).value().status, 200);
  EXPECT_FALSE(answered[0]);
}

TEST_F(HttpDoor, ends_with_what_hangs_and_tells_nobody) {
  ask({.url = server.url("/hangs"), .patience = 60s});
  ASSERT_TRUE(loop.run_until([&] { return !server.requests.empty(); }, kSoon));
  const auto began = std::chrono::steady_clock::now();
  http.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 2s);
  EXPECT_FALSE(loop.run_until([&] { return answered[0].has_value(); }, 20ms));
}

TEST_F(HttpDoor, loses_patience) {
  const auto answer = answer_to({.url = server.url("/hangs"), .patience = 50ms});
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("/hangs: "));
}

TEST_F(HttpDoor, ends_where_no_byte_comes) {
  const auto answer = answer_to({.url = server.url("/hangs"), .patience = 60s, .silence = 1s});
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, testing::EndsWith("/hangs: no byte came for 1 s"));
}

TEST_F(HttpDoor, whose_get_ends_where_no_byte_comes_and_is_not_silent_until_then) {
  int calls = 0;
  const auto answer =
      http_get(server.url("/hangs"), {.patience = 60s, .silence = 1s, .meanwhile = [&] { ++calls; }});
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, testing::EndsWith("/hangs: no byte came for 1 s"));
  EXPECT_GT(calls, 0);
}

TEST_F(HttpDoor, follows_nobody_elsewhere_and_takes_no_more_than_it_wants) {
  server.answers["/moved"] =
      "HTTP/1.1 302 Found\r\nLocation: " + server.url("/secret") + "\r\nContent-Length: 0\r\n\r\n";
  EXPECT_EQ(answer_to({.url = server.url("/moved")}).value().status, 302);
  server.answers["/large"] = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n12345678901";
  const auto large = answer_to({.url = server.url("/large"), .most_bytes = 10});
  ASSERT_FALSE(large);
  EXPECT_THAT(large.error().message, HasSubstr("more than the 10 bytes"));
  EXPECT_EQ(answer_to({.url = server.url("/large"), .most_bytes = 11}).value().body, "12345678901");
}

TEST_F(HttpDoor, names_an_address_where_nobody_is) {
  const auto answer = answer_to({.url = "http://127.0.0.1:1/x"});
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("http://127.0.0.1:1/x: "));
  EXPECT_FALSE(answer_to({.url = "gopher://127.0.0.1:1/x"}));
}

TEST_F(HttpDoor, names_the_variable_of_a_file_of_authorities_that_is_none) {
  const auto answer = answer_to({.url = "https" + server.url("/x").substr(4), .authorities = "/none.pem"});
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("/none.pem; expected SSL_CERT_FILE"));
}

TEST_F(HttpDoor, goes_through_a_proxy_but_not_to_this_machine) {
  const std::string elsewhere = "http://192.0.2.1/x", ok = "HTTP/1.1 200 OK\r\nContent-Length: ";
  server.answers[elsewhere] = ok + "5\r\n\r\nproxy";
  server.answers["/here"] = ok + "4\r\n\r\nhere";
  setenv("http_proxy", server.url("").c_str(), 1);
  const auto proxied = answer_to({.url = elsewhere}), direct = answer_to({.url = server.url("/here")});
  setenv("no_proxy", "192.0.2.1", 1);
  const auto excepted = answer_to({.url = elsewhere, .patience = 50ms});
  unsetenv("no_proxy");
  unsetenv("http_proxy");
  ASSERT_TRUE(proxied && direct);
  EXPECT_EQ(proxied.value().body, "proxy");
  EXPECT_EQ(direct.value().body, "here");
  EXPECT_FALSE(excepted) << "nobody has this address";
}

Error error_at(const std::string& url) {
  const auto answer = http_exchange({.url = url});
  return answer ? Error{"none"} : answer.error();
}

TEST(HttpPool, says_what_no_further_try_will_help) {
  EXPECT_TRUE(error_at("ftp://127.0.0.1:1/x").lasting);
  EXPECT_FALSE(error_at("http://127.0.0.1:1/x").lasting) << "its server may be back";
}

TEST(HttpExchange, names_the_variable_of_a_proxy_that_does_not_answer_or_is_none) {
  setenv("http_proxy", "http://me:word@127.0.0.1:1/", 1);
  const Error away = error_at("http://192.0.2.1/x");
  setenv("http_proxy", "nonsense://me:word@x", 1);
  const Error none = error_at("http://192.0.2.1/x");
  unsetenv("http_proxy");
  EXPECT_THAT(away.message, HasSubstr("; the proxy is that of http_proxy, and no_proxy names hosts"));
  for (const Error& error : {away, none}) EXPECT_THAT(error.message, testing::Not(HasSubstr("word")));
  EXPECT_FALSE(away.lasting) << "it may be back";
  EXPECT_THAT(none.message, HasSubstr("unsupported proxy; the proxy is that of http_proxy"));
  EXPECT_TRUE(none.lasting);
}

TEST(HttpExchange, is_not_tried_again_at_a_port_without_tls) {
  asio::io_context context;
  asio::ip::tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  std::thread server([&] {
    asio::ip::tcp::socket client(context);
    acceptor.accept(client);
    std::array<char, 4096> hello{};
    std::error_code over;
    client.read_some(asio::buffer(hello), over);
    asio::write(client, asio::buffer(std::string("HTTP/1.1 400 Bad Request\r\n\r\n")), over);
    client.read_some(asio::buffer(hello), over);  // it hangs up
  });
  const Error error = error_at(fmt::format("https://127.0.0.1:{}/x", acceptor.local_endpoint().port()));
  server.join();
  EXPECT_THAT(error.message, HasSubstr("this port does not speak TLS"));
  EXPECT_TRUE(error.lasting);
}

TEST(HttpExchange, breaks_off_when_it_is_over) {
  Loop loop;
  Server server(loop);
  std::atomic<bool> over = false;
  std::optional<Result<HttpAnswer>> answer;
  std::thread asks([&] {
    auto came = http_exchange({.url = server.url("/hangs"), .patience = 60s}, [&] { return over.load(); });
    loop.post([&, came] { answer = came; });
  });
  EXPECT_TRUE(loop.run_until([&] { return !server.requests.empty(); }, kSoon));
  over = true;
  EXPECT_TRUE(loop.run_until([&] { return answer.has_value(); }, kSoon));
  asks.join();
  ASSERT_TRUE(answer && !*answer);
  EXPECT_EQ(answer->error().message, "broken off");
  EXPECT_TRUE(answer->error().lasting);
}

TEST_F(HttpDoor, reads_files_and_waits_for_no_pipe) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a notice?x=%20";
  EXPECT_EQ(answer_to({.url = "file://" + path}).value().status, 404);
  std::ofstream(path) << "preempt 30\n";
  EXPECT_EQ(answer_to({.url = "file://" + path}).value().body, "preempt 30\n");
  EXPECT_FALSE(answer_to({.url = "file://" + path, .most_bytes = 5}));
  EXPECT_THAT(answer_to({.url = "file://" + folder.path()}).error().message,
              HasSubstr("expected a plain file"));
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(answer_to({.url = "file://" + pipe}));
}

}  // namespace
}  // namespace tw::host
