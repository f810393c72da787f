// SPDX-License-Identifier: Apache-2.0
#include "peer/viewer.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "host/system/calendar.h"

namespace tw::peer {
namespace {

constexpr Duration kBetweenBoards = std::chrono::seconds(1);

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
  monitor::WebContent content = routes_.content(request.path, request.query, loop_.now());
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

void Viewer::beat() {
  if (server_->followers() > 0) publish();
  loop_.at(loop_.now() + kBetweenBoards, life_.tie([this] { beat(); }));
}

}  // namespace tw::peer
