// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <regex>

#include "e2e/program.h"
#include "host/http.h"
#include "monitor/board/board_json.h"

namespace tw {
namespace {

using testing::HasSubstr;

class Watch : public ProgramTest {
 protected:
  /// The address that a program printed.
  static std::string url_of(const Program& program) {
    const std::regex pattern("watch: (https?://[^/]+)/");
    std::smatch found;
    std::string output;
    wait_until([&] {
      output = program.output();
      return std::regex_search(output, found, pattern);
    });
    return found.empty() ? "" : found[1].str();
  }

  static std::string get(const std::string& url) {
    const auto answer = host::http_get(url, {.patience = 5s});
    return answer && answer.value().status == 200 ? answer.value().body : "";
  }

  static std::optional<monitor::Board> board_at(const std::string& url) {
    auto board = monitor::board_from_json(get(url + "/board.json"));
    if (!board) return std::nullopt;
    return std::move(board).value();
  }

  static bool shows_round(const std::string& url, Round round) {
    return wait_until([&] {
      const auto board = board_at(url);
      return board && board->round >= round;
    });
  }

  /// How often a tag stands in the event file of TensorBoard.
  std::size_t times_in_events(const std::string& tag) const {
    std::size_t times = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path("boards"), error)) {
      const std::string text = content_of(entry.path());
      for (std::size_t at = 0; (at = text.find(tag, at)) != std::string::npos; ++at) ++times;
    }
    return times;
  }

  std::string error_of(std::vector<std::string> arguments) {
    Program program = tw(std::move(arguments), "error");
    EXPECT_EQ(program.wait(), 2);
    return program.output();
  }
};

TEST_F(Watch, any_peer_shows_the_run_and_another_program_shows_it_on) {
  const std::string run = write_run({.rounds = 100'000});
  const Program first = peer(run, 1, {"listen=127.0.0.1:0", "wait_for=2", "watch=127.0.0.1:0"});
  const Program second = peer(run, 2, {"join=" + address_of(1), "watch=127.0.0.1:0"});
  for (const Program* one : {&first, &second}) {
    ASSERT_TRUE(shows_round(url_of(*one), 3)) << one->output();
    EXPECT_THAT(get(url_of(*one) + "/metrics"), HasSubstr("\ntw_round "));
    EXPECT_THAT(get(url_of(*one) + "/"), HasSubstr("<html"));
  }
  const Program watcher = tw({"watch", url_of(first)}, "watcher");
  EXPECT_TRUE(shows_round(url_of(watcher), 3)) << watcher.output();
}

TEST_F(Watch, of_a_peer_shows_the_end_of_its_run_for_good) {
  constexpr Round kRounds = 1000;
  const std::string run = write_run({.rounds = kRounds});
  Program alone = peer(run, 1, {"watch=127.0.0.1:0"});
  const Program watcher = tw({"watch", url_of(alone)}, "watcher");
  ASSERT_TRUE(shows_round(url_of(watcher), 1)) << watcher.output();
  ASSERT_EQ(alone.wait(120s), 0) << alone.output();
  ASSERT_TRUE(shows_round(url_of(watcher), kRounds)) << watcher.output();
  const auto board = board_at(url_of(watcher));
  ASSERT_TRUE(board);
  EXPECT_TRUE(board->complete);
  ASSERT_EQ(board->peers.size(), 1U);
  EXPECT_EQ(board->peers[0].state, monitor::PeerState::left);
  EXPECT_THAT(get(url_of(watcher) + "/metrics"), HasSubstr("\ntw_run_over 1\n"));
}

TEST_F(Watch, a_folder_of_logs_is_shown_while_they_grow_and_after) {
  const std::string run = write_run({.rounds = 5});
  Program local =
      tw({"run", run, "--peers", "2", "--out", path("out"), "--watch", "127.0.0.1:0", "--", TW_TOY}, "local");
  ASSERT_NE(url_of(local), "") << local.output();
  ASSERT_EQ(local.wait(120s), 0) << local.output();
  Program watcher = tw({"watch", path("out"), "--tensorboard", path("boards")}, "watcher");
  ASSERT_TRUE(shows_round(url_of(watcher), 5)) << watcher.output();
  const auto board = board_at(url_of(watcher));
  ASSERT_TRUE(board);
  EXPECT_EQ(board->samples, summary().samples);
  EXPECT_EQ(board->identical, true);
  EXPECT_EQ(board->peers.size(), 2U);
  EXPECT_TRUE(wait_until([&] { return times_in_events("loss/batch") == 5; })) << watcher.output();
  watcher.send(SIGINT);
  EXPECT_EQ(watcher.wait(), 0);
}

TEST_F(Watch, beyond_this_machine_it_takes_a_token) {
  std::filesystem::create_directories(path("out"));
  EXPECT_THAT(error_of({"watch", path("out"), "--listen", "0.0.0.0:0"}),
              HasSubstr("0.0.0.0:0: beyond this machine a run is shown over TLS to holders of its tokens"));
  const Program watcher =
      tw({"watch", path("out"), "--listen", "0.0.0.0:0", "--token", "@" + path("run/token")}, "watcher");
  EXPECT_THAT(url_of(watcher), testing::StartsWith("https://")) << watcher.output();
}

TEST_F(Watch, errors_name_what_is_wrong) {
  EXPECT_THAT(error_of({"watch", path("nothing")}),
              HasSubstr("nothing: expected a folder of event logs, one log, or HOST:PORT of a peer"));
  EXPECT_THAT(error_of({"watch", folder(), "--listen", "8080"}),
              HasSubstr("--listen 8080: expected HOST:PORT, such as 127.0.0.1:8080"));
  Program peer = toy("wrong", {"watch=8080"});
  EXPECT_EQ(peer.wait(), 2);
  EXPECT_THAT(peer.output(), HasSubstr("watch=8080: expected HOST:PORT"));
  EXPECT_THAT(error_of({"watch", folder(), "--token", "nonsense"}), HasSubstr("--token"));
  EXPECT_THAT(error_of({"watch", folder(), "--pin", "abc"}), HasSubstr("--pin: is of the certificate"));
  EXPECT_THAT(error_of({"report", folder(), "--trace", path("t.json"), "--json"}), HasSubstr("give one of"));
}

}  // namespace
}  // namespace tw
