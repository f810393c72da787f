// SPDX-License-Identifier: Apache-2.0
#include "peer/viewer.h"

#include <fmt/format.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "host/system/calendar.h"

namespace tw::peer {
namespace {

constexpr Duration kBetweenBoards = std::chrono::seconds(1);
constexpr Duration kLastBoardTakes = std::chrono::milliseconds(100);

/// Whether it asks for the board after that of its last answer, and the query without that: "all&next",
/// "next".
bool takes_next(const std::string& path, std::string& query) {
  constexpr std::string_view kNext = "next";
  if (path != "/board.json" || !query.ends_with(kNext)) return false;
  const std::string rest = query.substr(0, query.size() - kNext.size());
  if (!rest.empty() && !rest.ends_with('&')) return false;
  query = rest.substr(0, rest.size() - (rest.empty() ? 0 : 1));
  return true;
}

}  // namespace

Result<std::unique_ptr<Viewer>> Viewer::open(host::Loop& loop, host::WebOptions options,
                                             std::function<Result<monitor::Board>()> board) {
  std::unique_ptr<Viewer> viewer(new Viewer(loop, std::move(board)));
  auto server = host::WebServer::open(
      loop, std::move(options),
      [self = viewer.get()](const host::WebRequest& request) { return self->answer(request); });
  if (!server) return server.error();
  viewer->server_ = std::move(server).value();
  viewer->beat();
  return viewer;
}

Viewer::Viewer(host::Loop& loop, std::function<Result<monitor::Board>()> board)
    : loop_(loop), routes_(std::move(board)), began_unix_s_(host::now_unix_s()) {}

std::string Viewer::how_to_watch() const {
  const std::string pin = server_->pin();
  if (pin.empty()) return url();
  return fmt::format(
      "{}\n  viewers need a token: tw token FOLDER --role observer; a browser takes it as ?token=... once\n"
      "  and its key: --pin {}",
      url(), pin);
}

host::WebAnswer Viewer::answer(const host::WebRequest& request) {
  std::string query = request.query;
  if (takes_next(request.path, query) && !request.waited) return {.waits = true};
  monitor::WebContent content = routes_.content(request.path, query, loop_.now());
  // What was published when somebody last looked is old.
  if (content.events && server_->followers() == 0) publish();
  host::WebAnswer answer{.status = content.status,
                         .content_type = std::move(content.type),
                         .body = std::move(content.body),
                         .follows = content.events};
  if (!content.policy.empty()) answer.headers.emplace_back("Content-Security-Policy", content.policy);
  return answer;
}

void Viewer::publish() {
  const std::string id = fmt::format("{}.{}", began_unix_s_, ++events_);
  server_->publish(id, routes_.event_of(id, loop_.now()));
}

void Viewer::say_goodbye() {
  routes_.forget();
  if (server_->followers() > 0) publish();
  loop_.run_until([this] { return server_->flushed(); }, kLastBoardTakes);
}

void Viewer::beat() {
  if (server_->followers() > 0) publish();
  loop_.at(loop_.now() + kBetweenBoards, life_.tie([this] { beat(); }));
}

}  // namespace tw::peer
