// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/board_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text/printable.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/plan/run_prices.h"
#include "host/address.h"
#include "host/http.h"
#include "host/lifeline.h"
#include "monitor/board/board_json.h"
#include "monitor/logs/followed_logs.h"
#include "monitor/logs/log_file.h"
#include "peer/token_file.h"

namespace tw::cli {
namespace {

constexpr Duration kFeedPatience = std::chrono::seconds(5);
constexpr Duration kLeastBetweenAsks = std::chrono::milliseconds(100);
constexpr std::string_view kBoardPath = "/board.json";
constexpr std::size_t kMostWords = 200;  ///< of an answer that is no board
constexpr std::size_t kMostFeedBytes = std::size_t{64} << 20;

std::string first_line(const std::string& text) {
  return text.substr(0, std::min(text.find_first_of("\r\n"), kMostWords));
}

class LogFeed final : public BoardFeed {
 public:
  static Result<std::unique_ptr<BoardFeed>> open(const FeedArguments& arguments, host::Loop& loop) {
    if (!arguments.plan.empty()) TW_TRY(prices_for(arguments.where, arguments.plan, {}));
    std::unique_ptr<LogFeed> feed(new LogFeed(arguments, loop));
    auto logs = monitor::FollowedLogs::open(
        arguments.where,
        [self = feed.get()](const std::vector<PeerId>& peers) { return self->facts_of(peers); });
    if (!logs) return logs.error();
    feed->logs_.emplace(std::move(logs).value());
    return std::unique_ptr<BoardFeed>(std::move(feed));
  }

  void ask(Done done) override { done(read()); }

  std::string name() const override { return "logs in " + arguments_.where; }

  std::string note() const override {
    const std::string left_out = logs_->left_out();
    return left_out.empty() ? "" : arguments_.where + ": " + left_out;
  }

 private:
  LogFeed(FeedArguments arguments, host::Loop& loop) : arguments_(std::move(arguments)), loop_(loop) {}

  monitor::JournalOptions facts_of(const std::vector<PeerId>& peers) {
    auto prices = prices_for(arguments_.where, arguments_.plan, peers);
    trouble_ = prices ? "" : prices.error().message;
    return {.usd_per_h = prices ? std::move(prices).value() : PeerPrices{},
            .keeps_to_usd_per_h = !arguments_.plan.empty(),
            .may_lack_ends = true};
  }

  Result<monitor::Board> read() {
    TW_TRY(logs_->poll());
    if (!trouble_.empty()) return Error{trouble_};
    if (logs_->logs() == 0) return Error{monitor::no_logs_in(arguments_.where)};
    const double now_s = static_cast<double>(loop_.unix_nanos()) * 1e-9;
    monitor::Board now = logs_->board(now_s);
    goes_on_ = goes_on_ || !(now.is_over() || now.dead_since_s);
    if (goes_on_) return now;
    monitor::Board board = logs_->board(0);  // its time stands still
    if (now.is_over()) {                     // of some peers the logs have no end, as is known by now
      board.peers = std::move(now.peers);
      board.money = now.money;
    }
    if (now.dead_since_s) board.is_dead_since(*now.dead_since_s);
    return board;
  }

  FeedArguments arguments_;
  host::Loop& loop_;
  std::optional<monitor::FollowedLogs> logs_;
  std::string trouble_;  ///< with the prices
  bool goes_on_ = false;
};

/// Waits at the peer for each next board, so that it has the last one when the peer ends.
class PeerFeed final : public BoardFeed {
 public:
  struct Place {
    std::string root;   ///< "http://127.0.0.1:8080"
    std::string token;  ///< as text; empty: none is shown
    std::string pin;
    bool all_rounds = false;
  };

  PeerFeed(Place place, host::Loop& loop) : place_(std::move(place)), loop_(loop), http_(loop) {}

  void ask(Done done) override {
    done_ = std::move(done);
    if (newest_) return tell();
    if (!looks_) look();
  }

  std::string name() const override { return "peer at " + place_.root; }

  std::string note() const override { return ""; }

 private:
  void look() {
    looks_ = true;
    std::string query = place_.all_rounds ? "?all" : "";
    if (answers_) query += query.empty() ? "?next" : "&next";
    world::HttpRequest request{.url = fmt::format("{}{}{}", place_.root, kBoardPath, query),
                               .patience = kFeedPatience,
                               .most_bytes = kMostFeedBytes};
    request.pin = place_.pin;
    if (!place_.token.empty()) request.headers.emplace_back("Authorization", "Bearer " + place_.token);
    http_.request(std::move(request), [this, asked_at = loop_.now()](Result<world::HttpAnswer> answer) {
      take(board_in(std::move(answer)));
      if (answers_) loop_.at(asked_at + kLeastBetweenAsks, life_.tie([this] { look(); }));
    });
  }

  /// A board that nobody has asked for yet stays, whatever comes after it.
  void take(Result<monitor::Board> board) {
    answers_ = looks_ = static_cast<bool>(board);
    if (board || !newest_) newest_ = std::move(board);
    if (done_) tell();
    // Without a board the next ask() looks again.
    if (!answers_ && newest_ && !*newest_) newest_.reset();
  }

  void tell() {
    const Done done = std::exchange(done_, {});
    Result<monitor::Board> newest = std::move(*std::exchange(newest_, std::nullopt));
    done(std::move(newest));
  }

  Result<monitor::Board> board_in(Result<world::HttpAnswer> answer) const {
    if (!answer) return Error{answer.error().message + hint_on(answer.error().message)};
    if (answer.value().status == 401 && place_.token.empty())
      return Error{place_.root +
                   ": shows the run to holders of its tokens; give --token @FILE, made by: tw "
                   "token FOLDER --role observer"};
    if (answer.value().status != 200)
      return Error{fmt::format("{}{}: answers {}: {}", place_.root, kBoardPath, answer.value().status,
                               printable_line(trimmed(first_line(answer.value().body))))};
    auto board = monitor::board_from_json(answer.value().body);
    if (!board) return Error{fmt::format("{}{}: {}", place_.root, kBoardPath, board.error().message)};
    return board;
  }

  /// What the user may have meant, by the words of libcurl.
  std::string hint_on(const std::string& failure) const {
    const auto says = [&](std::string_view words) { return failure.find(words) != std::string::npos; };
    if (is_https(place_.root) && place_.pin.empty() && says("certificate"))
      return "; its peer makes it itself: give --pin sha256//..., which it prints below its line watch:";
    if (!is_https(place_.root) && (says("Empty reply") || says("Received HTTP/0.9")))
      return fmt::format("; does it speak TLS? then: https{} --token @FILE --pin sha256//...",
                         place_.root.substr(std::string_view("http").size()));
    return "";
  }

  Place place_;
  host::Loop& loop_;
  std::optional<Result<monitor::Board>> newest_;  ///< since the last answer of ask()
  Done done_;
  bool answers_ = false;  ///< the peer, at the last look
  bool looks_ = false;    ///< a look is under way, or due
  host::CurlHttp http_;
  host::Lifeline life_;
};

/// What a peer prints: the digest of the key in base64. Empty: none is given.
Status check_pin(const std::string& pin, const std::string& root) {
  if (pin.empty()) return Unit{};
  if (!is_https(root))
    return Error{fmt::format("--pin: is of the certificate at https://, and {} is not; leave it out", root)};
  constexpr std::string_view kKind = "sha256//";
  constexpr std::size_t kDigits = 43;
  const auto is_digit = [](unsigned char c) { return std::isalnum(c) != 0 || c == '+' || c == '/'; };
  const std::string_view digits =
      std::string_view(pin).substr(pin.starts_with(kKind) ? kKind.size() : pin.size());
  const bool right = digits.size() == kDigits + 1 && digits.ends_with('=') &&
                     std::ranges::all_of(digits.substr(0, kDigits), is_digit);
  if (right) return Unit{};
  return Error{fmt::format(
      "--pin {}: expected sha256// and 44 characters, as its peer prints it below its line watch:", pin)};
}

bool is_url(const std::string& text) { return text.starts_with("http://") || is_https(text); }

}  // namespace

Result<std::unique_ptr<BoardFeed>> open_feed(const FeedArguments& arguments, host::Loop& loop) {
  std::error_code error;
  if (std::filesystem::exists(arguments.where, error)) {
    if (!arguments.pin.empty())
      return Error{
          fmt::format("--pin: is of the certificate at https://ADDRESS, and {} holds logs; leave it out",
                      arguments.where)};
    if (!arguments.token.empty())
      return Error{fmt::format("--token: is shown to https://ADDRESS alone, and {} holds logs; leave it out",
                               arguments.where)};
    return LogFeed::open(arguments, loop);
  }
  PeerFeed::Place place{
      .root = arguments.where, .token = {}, .pin = arguments.pin, .all_rounds = arguments.all_rounds};
  if (!is_url(place.root)) {
    const auto address = host::parse_address(place.root);
    if (!address)
      return Error{fmt::format(
          "{}: expected a folder of event logs, one log, or HOST:PORT of a peer that runs with --watch",
          arguments.where)};
    place.root = "http://" + to_string(address.value());
  }
  if (!arguments.plan.empty())
    return Error{fmt::format("--plan: prices event logs; the peer at {} knows its own prices; leave it out",
                             arguments.where)};
  if (place.root.ends_with(kBoardPath)) place.root.resize(place.root.size() - kBoardPath.size());
  while (place.root.ends_with('/')) place.root.pop_back();
  TW_TRY(check_pin(arguments.pin, place.root));
  if (!arguments.token.empty()) {
    if (!is_https(place.root))
      return Error{
          fmt::format("--token: is shown to https:// alone, and {} is not; leave it out", place.root)};
    TW_TRY(const auto token, peer::read_token("--token", arguments.token, warn));
    place.token = to_text(token);
  }
  return std::unique_ptr<BoardFeed>(std::make_unique<PeerFeed>(std::move(place), loop));
}

}  // namespace tw::cli
