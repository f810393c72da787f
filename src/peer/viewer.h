// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "host/lifeline.h"
#include "host/loop.h"
#include "host/web/server.h"
#include "monitor/web/web_routes.h"

namespace tw::peer {

/// Shows a run to browsers and programs (docs/watch.md): a board a second to followers, the rest on demand.
/// Loop thread; the loop outlives it.
class Viewer {
 public:
  /// board: the run as it is now, or why it is not known; called on the loop thread, once a second at most
  /// (and by say_goodbye), and not without viewers. Errors of WebServer::open.
  static Result<std::unique_ptr<Viewer>> open(host::Loop& loop, host::WebOptions options,
                                              std::function<Result<monitor::Board>()> board);

  Viewer(const Viewer&) = delete;
  Viewer& operator=(const Viewer&) = delete;

  /// "http://127.0.0.1:8080/"
  const std::string& url() const { return server_->url(); }

  /// For a terminal: the address, and beyond this machine, on two more lines, what a viewer needs besides.
  std::string how_to_watch() const;

  /// Sends all viewers the board as it is now. Runs the loop until they have it, for 100 ms at most.
  void say_goodbye();

 private:
  Viewer(host::Loop& loop, std::function<Result<monitor::Board>()> board);

  host::WebAnswer answer(const host::WebRequest& request);
  void publish();
  void beat();

  host::Loop& loop_;
  monitor::WebRoutes routes_;
  std::int64_t began_unix_s_;
  std::uint64_t events_ = 0;
  std::unique_ptr<host::WebServer> server_;
  host::Lifeline life_;
};

}  // namespace tw::peer
