// SPDX-License-Identifier: Apache-2.0
#include "monitor/web/web_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include "monitor/board/board_extract.h"
#include "monitor/board/board_json.h"
#include "monitor/export/chrome_trace_json.h"
#include "monitor/export/metrics.h"
#include "monitor/report/summary_json.h"
#include "monitor/web/web_page.h"

namespace tw::monitor {
namespace {

/// A little less than the second between two events.
constexpr Duration kStaysTrue = std::chrono::milliseconds(900);
constexpr const char* kJsonType = "application/json";
constexpr const char* kPlainType = "text/plain; charset=utf-8";

std::string extract_json(const Board& board) { return to_json(extract_of(board)); }

std::string whole_json(const Board& board) { return to_json(board); }

std::string what_if_json(const Board& board) { return to_json(what_if(board)); }

std::string summary_json(const Board& board) { return to_json(summary_of(board)); }

/// What was expected in place of this query; empty: it is right. Browsers and scrapers add their own ones
/// elsewhere.
std::string_view expected_query(const std::string& path, const std::string& query) {
  if (query.empty()) return "";
  if (path == "/board.json") return query == "all" ? "" : "?all or nothing";
  return path == "/predict" ? "nothing" : "";
}

}  // namespace

const Board& WebRoutes::board(Instant now) {
  if (!seen_ || now - seen_at_ >= kStaysTrue) {
    seen_ = board_();
    seen_at_ = now;
    texts_.clear();
  }
  return *seen_;
}

const std::string& WebRoutes::text(const std::string& name, Instant now, std::string (*print)(const Board&)) {
  const Board& board = this->board(now);
  const auto [place, fresh] = texts_.try_emplace(name);
  if (fresh) place->second = print(board);
  return place->second;
}

WebContent WebRoutes::content(const std::string& path, const std::string& query, Instant now) {
  if (const std::string_view expected = expected_query(path, query); !expected.empty())
    return {.status = 400,
            .type = kPlainType,
            .body = fmt::format("{}?{}: expected {} after the path\n", path, query, expected)};
  if (path == "/")
    return {.type = "text/html; charset=utf-8",
            .body = std::string(live_page()),
            .policy = std::string(page_policy())};
  if (path == "/events") return {.type = "text/event-stream", .body = "", .events = true};
  if (path == "/board.json" && query == "all")
    return {.type = kJsonType, .body = text("all", now, whole_json)};
  if (path == "/board.json") return {.type = kJsonType, .body = text(path, now, extract_json)};
  if (path == "/predict") return {.type = kJsonType, .body = text(path, now, what_if_json)};
  if (path == "/metrics") return {.type = std::string(kMetricsType), .body = text(path, now, metrics_text)};
  if (path == "/summary.json") return {.type = kJsonType, .body = text(path, now, summary_json)};
  if (path == "/trace.json") return {.type = kJsonType, .body = text(path, now, chrome_trace)};
  return {.status = 404,
          .type = kPlainType,
          .body = fmt::format("{}: no such page; there are /, /events, /board.json, /predict, /metrics, "
                              "/summary.json and /trace.json\n",
                              path)};
}

std::string WebRoutes::event_of(const std::string& id, Instant now) {
  return fmt::format("event: board\nid: {}\ndata: {}\n\n", id, text("/board.json", now, extract_json));
}

}  // namespace tw::monitor
