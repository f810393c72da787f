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

/// A page that is printed from the board.
struct WebRoutes::Printed {
  std::string_view address;  ///< path, and query where that chooses another print
  std::string_view type;
  std::string (*print)(const Board&);
};

namespace {

using Printed = WebRoutes::Printed;

/// A little less than the second between two events.
constexpr Duration kStaysTrue = std::chrono::milliseconds(900);
constexpr std::string_view kJsonType = "application/json";
constexpr const char* kPlainType = "text/plain; charset=utf-8";

std::string extract_json(const Board& board) { return to_json(extract_of(board)); }

std::string whole_json(const Board& board) { return to_json(board); }

std::string what_if_json(const Board& board) { return to_json(what_if(board)); }

std::string summary_json(const Board& board) { return to_json(summary_of(board)); }

constexpr Printed kExtract{"/board.json", kJsonType, extract_json};
constexpr Printed kPrinted[] = {kExtract,
                                {"/board.json?all", kJsonType, whole_json},
                                {"/predict", kJsonType, what_if_json},
                                {"/metrics", kMetricsType, metrics_text},
                                {"/summary.json", kJsonType, summary_json},
                                {"/trace.json", kJsonType, chrome_trace}};

/// nullptr: there is none.
const Printed* printed_at(const std::string& address) {
  const auto found = std::ranges::find(kPrinted, address, &Printed::address);
  return found == std::end(kPrinted) ? nullptr : &*found;
}

/// What was expected in place of this query; empty: it is right. Browsers and scrapers add their own ones
/// elsewhere.
std::string_view expected_query(const std::string& path, const std::string& query) {
  if (query.empty()) return "";
  if (path == "/board.json") return query == "all" ? "" : "?all, ?next, ?all&next or nothing";
  return path == "/predict" ? "nothing" : "";
}

}  // namespace

const Result<Board>& WebRoutes::board(Instant now) {
  if (!seen_ || now - seen_at_ >= kStaysTrue) {
    seen_ = board_();
    seen_at_ = now;
    texts_.clear();
  }
  return *seen_;
}

/// Empty: there is no board.
const std::string& WebRoutes::text(const Printed& printed, Instant now) {
  const Result<Board>& board = this->board(now);
  const auto [place, fresh] = texts_.try_emplace(printed.address);
  if (fresh && board) place->second = printed.print(board.value());
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
  const Printed* printed = printed_at(path == kExtract.address && query == "all" ? path + "?all" : path);
  if (printed == nullptr)
    return {.status = 404,
            .type = kPlainType,
            .body = fmt::format("{}: no such page; there are /, /events, /board.json, /predict, /metrics, "
                                "/summary.json and /trace.json\n",
                                path)};
  if (const Result<Board>& shown = board(now); !shown)
    return {.status = 503, .type = kPlainType, .body = shown.error().message + "\n"};
  return {.type = std::string(printed->type), .body = text(*printed, now)};
}

std::string WebRoutes::event_of(const std::string& id, Instant now) {
  if (!board(now)) return "";
  return fmt::format("event: board\nid: {}\ndata: {}\n\n", id, text(kExtract, now));
}

}  // namespace tw::monitor
