// SPDX-License-Identifier: Apache-2.0
#include "cli/watched_peer.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/printable.h"
#include "cli/commands.h"
#include "monitor/board_json.h"

namespace tw::cli {
namespace {

constexpr Duration kBetweenQuestions = std::chrono::seconds(1);
constexpr std::size_t kMostBoardBytes = std::size_t{64} << 20;

}  // namespace

Result<std::unique_ptr<WatchedPeer>> WatchedPeer::open(host::Loop& loop, Place place,
                                                       host::WebOptions options) {
  std::unique_ptr<WatchedPeer> watched(new WatchedPeer(loop, std::move(place)));
  auto viewer = peer::Viewer::open(loop, std::move(options), [self = watched.get()] { return self->board_; });
  if (!viewer) return viewer.error();
  watched->viewer_ = std::move(viewer).value();
  watched->ask();
  return watched;
}

void WatchedPeer::ask() {
  world::HttpRequest request{.url = place_.url + "/board.json?all", .most_bytes = kMostBoardBytes};
  request.pin = place_.pin;
  if (!place_.token.empty()) request.headers.emplace_back("Authorization", "Bearer " + place_.token);
  http_.request(std::move(request), life_.tie([this](const Result<world::HttpAnswer>& answer) {
    take(answer);
    loop_.at(loop_.now() + kBetweenQuestions, life_.tie([this] { ask(); }));
  }));
}

void WatchedPeer::take(const Result<world::HttpAnswer>& answer) {
  if (!answer) return tell(answer.error().message);
  if (answer.value().status != 200)
    return tell(fmt::format("{}: answers {}: {}", place_.url, answer.value().status,
                            printable_line(answer.value().body)));
  auto board = monitor::board_from_json(answer.value().body);
  if (!board) return tell(fmt::format("{}: {}", place_.url, board.error().message));
  board_ = std::move(board).value();
  trouble_.clear();
}

void WatchedPeer::tell(const std::string& trouble) {
  if (trouble_.empty()) warn(trouble + "; trying again every second");
  trouble_ = trouble;
}

}  // namespace tw::cli
