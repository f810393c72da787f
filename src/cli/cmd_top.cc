// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/text/duration.h"
#include "base/text/number.h"
#include "cli/commands.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/terminal.h"
#include "cli/watch/board_feed.h"
#include "host/system/keys.h"
#include "monitor/terminal/terminal_line.h"
#include "monitor/terminal/terminal_view.h"

namespace tw::cli {
namespace {

constexpr Duration kBetweenBoards = std::chrono::seconds(1);
/// For --once where stdout is no terminal and $COLUMNS says nothing.
constexpr std::size_t kFileWidth = 120;
/// All peers have room in it.
constexpr std::size_t kFileHeight = 100'000;
constexpr std::size_t kMostWidth = 1000;

bool wants_colour() {
  const char* const no = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (no == nullptr || *no == '\0');
}

std::size_t width_of_file() {
  if (::isatty(STDOUT_FILENO) == 1) return screen_size().width;
  const char* const columns = std::getenv("COLUMNS");
  const auto told = parse_number<std::size_t>(columns == nullptr ? "" : columns);
  return told && *told > 0 && *told <= kMostWidth ? *told : kFileWidth;
}

/// The screen of `tw top`: a board a second, and the keys.
class Top {
 public:
  Top(host::Loop& loop, BoardFeed& feed, Screen screen)
      : loop_(loop), feed_(feed), screen_(std::move(screen)) {
    view_.colour = wants_colour();
  }

  int run() {
    loop_.on_signal([this](int signal) { on_signal(signal); },
                    {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP});
    const host::Keys keys(loop_, STDIN_FILENO, [this](std::string_view typed) { on_keys(typed); });
    ask();
    loop_.run();
    return code_;
  }

 private:
  void ask() {
    asked_at_ = loop_.now();
    feed_.ask([this](Result<monitor::Board> board) {
      if (board) {
        board_ = std::move(board).value();
        came_at_ = loop_.now();
        trouble_.clear();
      } else {
        trouble_ = board.error().message;
      }
      paint();
      loop_.at(asked_at_ + kBetweenBoards, [this] { ask(); });
    });
  }

  void on_signal(int signal) {
    if (signal == SIGTSTP) screen_.stop_here();
    if (signal == SIGTSTP || signal == SIGWINCH) {
      screen_.forget();
      return paint();
    }
    end(kInterrupted);
  }

  void on_keys(std::string_view typed) {
    if (typed.empty() || typed == "q" || typed == "Q") return end(kDone);
    const auto page = static_cast<std::ptrdiff_t>(monitor::peers_shown(board_, view_));
    if (typed == "i") view_.order = monitor::PeerOrder::id;
    if (typed == "s") view_.order = monitor::PeerOrder::state;
    if (typed == "v") view_.order = monitor::PeerOrder::speed;
    if (typed == "d") view_.order = monitor::PeerOrder::usd;
    if (typed == "\x1b[A" || typed == "k") scroll(-1);
    if (typed == "\x1b[B" || typed == "j") scroll(1);
    if (typed == "\x1b[5~") scroll(-page);
    if (typed == "\x1b[6~" || typed == " ") scroll(page);
    paint();
  }

  void scroll(std::ptrdiff_t by) {
    const std::size_t rows = monitor::peers_shown(board_, view_), peers = board_.peers.size();
    const auto most = static_cast<std::ptrdiff_t>(peers - std::min(rows, peers));
    const auto to = std::clamp(static_cast<std::ptrdiff_t>(view_.first_peer) + by, std::ptrdiff_t{0}, most);
    view_.first_peer = static_cast<std::size_t>(to);
  }

  void paint() {
    const ScreenSize size = screen_size();
    view_.width = size.width;
    view_.height = size.height - 1;
    std::vector<std::string> shown = lines(board_, view_);
    shown.resize(view_.height);
    shown.push_back(foot());
    screen_.show(std::move(shown));
  }

  std::string foot() const {
    monitor::TerminalLine line;
    if (!trouble_.empty() && !board_.is_over()) {
      const std::string age = duration_text(to_seconds(loop_.now() - came_at_));
      line.add(fmt::format("shown: {} ago. {}", age, trouble_), monitor::Paint::alarm);
      return line.text(view_.width, view_.colour);
    }
    line.add(fmt::format("q quits  order: {} (i, s, v, d: id, state, speed, USD)  arrows scroll  {}",
                         name_of(view_.order), feed_.name()),
             monitor::Paint::dim);
    return line.text(view_.width, view_.colour);
  }

  void end(int code) {
    code_ = code;
    loop_.stop();
  }

  host::Loop& loop_;
  BoardFeed& feed_;
  Screen screen_;
  monitor::Board board_;
  monitor::TerminalView view_;
  std::string trouble_;  ///< why there is no newer board
  Instant asked_at_{}, came_at_{};
  int code_ = kDone;
};

/// The first board decides whether there is anything to show.
Result<monitor::Board> first_board(host::Loop& loop, BoardFeed& feed, bool& stopped) {
  std::optional<Result<monitor::Board>> board;
  loop.on_signal([&](int) { stopped = true; });
  feed.ask([&](Result<monitor::Board> answer) { board = std::move(answer); });
  loop.run_until([&] { return stopped || board; }, std::chrono::minutes(1));
  if (board) return std::move(*board);
  return Error{feed.name() + ": no answer"};
}

}  // namespace

void describe_top(CLI::App& app, TopArguments& arguments) {
  CLI::App* command = app.add_subcommand("top", "Show a run in the terminal");
  command
      ->add_option("LOGS|ADDRESS", arguments.where,
                   "folder with event logs, one log, or HOST:PORT of a peer with --watch")
      ->required();
  command->add_option("--plan", arguments.plan,
                      "PLAN.yaml with the one price of all machines; default: that of tw up");
  command->add_option("--token", arguments.token, "TOKEN or @FILE of the run, for https://ADDRESS");
  command->add_option("--pin", arguments.pin,
                      "sha256//... key of the certificate of ADDRESS, as its peer prints it");
  command->add_flag("--once", arguments.once, "print once and exit: for scripts, without control sequences");
  command->footer(
      "Keys: q or Ctrl-C quits; i, s, v, d order the peers by id, state, speed or USD; arrows, j, k, space\n"
      "and page keys scroll. NO_COLOR=1: no colours. --once prints as wide as the terminal, else as\n"
      "$COLUMNS says, else 120 columns.\n"
      "Exit codes: 0 quit or printed, 1 there is no board (unreadable log, no answer), 2 wrong usage or no\n"
      "terminal, 130 Ctrl-C or another signal.\n"
      "\n"
      "Examples:\n"
      "  tw top tw-out\n"
      "  tw top 127.0.0.1:8080\n"
      "  tw top https://10.0.0.5:8443 --token @observer --pin sha256//Zm9v...=\n"
      "  ssh -t vm tw top 127.0.0.1:8080\n"
      "  tw top tw-out --once | head -3");
}

int top(const TopArguments& arguments) {
  host::Loop loop;
  const auto feed = open_feed(
      {.where = arguments.where, .plan = arguments.plan, .token = arguments.token, .pin = arguments.pin},
      loop);
  if (!feed) return complain(feed.error().message, kUsage);
  bool stopped = false;
  const auto board = first_board(loop, *feed.value(), stopped);
  if (stopped) return kInterrupted;
  if (!board) return complain(board.error().message, kFailed);
  if (const std::string note = feed.value()->note(); !note.empty()) warn(note);
  if (arguments.once) {
    const monitor::TerminalView view{.width = width_of_file(), .height = kFileHeight};
    for (const std::string& line : lines(board.value(), view)) print_out("{}\n", line);
    return kDone;
  }
  auto screen = Screen::take();
  if (!screen) return complain("top: " + screen.error().message, kUsage);
  return Top(loop, *feed.value(), std::move(screen).value()).run();
}

}  // namespace tw::cli
