// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "monitor/board/board.h"

namespace tw::monitor {

/// What is sent to a browser.
struct WebContent {
  int status = 200;
  std::string type;
  std::string body;
  std::string policy{};  ///< Content-Security-Policy; empty: none of its own
  bool events = false;   ///< no body: event_of() from now on
};

/// What there is to see of a run, by path: /, /events, /board.json, /predict, /metrics, /summary.json,
/// /trace.json.
/// Boards and their texts are made at most once a second, however many ask. No door; one thread.
class WebRoutes {
 public:
  struct Printed;

  /// board: as it is now, or why there is none.
  explicit WebRoutes(std::function<Result<Board>()> board) : board_(std::move(board)) {}

  /// query: "all" after /board.json asks for all rounds; otherwise it is an extract (extract_of). Another one
  /// is refused (400), but after / and /events. Without a board all but these two answer 503 with the reason.
  WebContent content(const std::string& path, const std::string& query, Instant now);

  /// For Server-Sent Events: `event: board`, the id, and the extract as JSON. Empty: there is no board.
  std::string event_of(const std::string& id, Instant now);

  /// The next one who asks gets a new board.
  void forget() { seen_.reset(); }

 private:
  const Result<Board>& board(Instant now);
  const std::string& text(const Printed& printed, Instant now);

  std::function<Result<Board>()> board_;
  std::optional<Result<Board>> seen_;
  Instant seen_at_{};
  std::map<std::string_view, std::string> texts_;  ///< of the board that was seen, by address
};

}  // namespace tw::monitor
