// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

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
  /// board: as it is now.
  explicit WebRoutes(std::function<Board()> board) : board_(std::move(board)) {}

  /// query: "all" after /board.json asks for all rounds; otherwise it is an extract (extract_of). Another one
  /// is refused (400), but after / and /events.
  WebContent content(const std::string& path, const std::string& query, Instant now);

  /// For Server-Sent Events: `event: board`, the id, and the extract as JSON.
  std::string event_of(const std::string& id, Instant now);

 private:
  const Board& board(Instant now);
  const std::string& text(const std::string& name, Instant now, std::string (*print)(const Board&));

  std::function<Board()> board_;
  std::optional<Board> seen_;
  Instant seen_at_{};
  std::map<std::string, std::string> texts_;  ///< of the board that was seen
};

}  // namespace tw::monitor
