// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/peer_name.h"
#include "base/text/columns.h"
#include "base/text/duration.h"
#include "monitor/terminal/terminal_numbers.h"
#include "monitor/terminal/terminal_parts.h"

namespace tw::monitor {

namespace {

constexpr std::size_t kMostWaits = 3;
constexpr std::size_t kMostDelayLines = 3;
constexpr std::size_t kMostNamed = 4;  ///< more peers are just counted
constexpr std::size_t kRunDigits = 8;

/// Words, two spaces apart, on as many lines as they need.
class Flow {
 public:
  explicit Flow(std::size_t width) : width_(width) {}

  void add(const std::string& words, Paint paint = Paint::plain) {
    TerminalLine& last = lines_.back();
    const bool fits = last.is_empty() || last.columns() + 2 + columns_of(words) <= width_;
    if (fits) {
      last.add(last.is_empty() ? "" : "  ").add(words, paint);
    } else {
      lines_.emplace_back().add(words, paint);
    }
  }

  void break_line() {
    if (!lines_.back().is_empty()) lines_.emplace_back();
  }

  std::vector<TerminalLine> take() {
    if (lines_.back().is_empty()) lines_.pop_back();
    return std::move(lines_);
  }

 private:
  std::size_t width_;
  std::vector<TerminalLine> lines_ = std::vector<TerminalLine>(1);
};

void add_progress(Flow& flow, const Board& board) {
  flow.add(board.run.empty() ? "run not known yet" : "run " + board.run.substr(0, kRunDigits), Paint::title);
  std::string round = board.round == 0 ? "before the first round" : fmt::format("round {}", board.round);
  if (board.last_round) round += fmt::format(" of {}", *board.last_round);
  flow.add(round, Paint::title);
  if (board.complete) flow.add("complete", Paint::good);
  if (!board.ended.empty()) flow.add("over: " + board.ended, Paint::caution);
  if (board.dead_since_s)
    flow.add(fmt::format("DEAD since {} UTC: start it again with the command that began it, it resumes",
                         date_and_time(*board.dead_since_s)),
             Paint::alarm);
  flow.add(grouped(board.samples) + " samples");
  if (!board.is_over() && !board.dead_since_s) flow.add(rate_text(board.speed.samples_per_s) + " samples/s");
  if (board.now_s > 0) flow.add(time_of_day(board.now_s) + " UTC", Paint::dim);
}

void add_peers(Flow& flow, const Board& board) {
  std::vector<const BoardPeer*> peers;
  for (const BoardPeer& peer : board.peers) peers.push_back(&peer);
  if (peers.empty()) return;
  flow.add(fmt::format("{} {}: {}", peers.size(), peers.size() == 1 ? "peer" : "peers", states_text(peers)));
}

void add_model(Flow& flow, const Board& board) {
  add_peers(flow, board);
  if (board.loss) flow.add(fmt::format("loss {:.4g}", *board.loss));
  for (const BoardEvaluation& one : newest_evaluations(board))
    flow.add(fmt::format("{} {:.4g} after round {}", one.name, one.value, one.round));
  if (board.speed.granularity) flow.add("granularity " + rate_text(*board.speed.granularity));
  if (board.speed.hidden) flow.add(fmt::format("{:.0f} % of averaging hidden", 100 * *board.speed.hidden));
  if (board.speed.goodput) flow.add(fmt::format("goodput {:.0f} %", 100 * *board.speed.goodput));
  if (!board.identical) return;
  flow.add(*board.identical ? "identical parameters" : "PARAMETERS DIFFER",
           *board.identical ? Paint::good : Paint::alarm);
}

void add_budget(Flow& flow, double budget, double usd) {
  const double share = budget > 0 ? usd / budget : 1;
  flow.add(fmt::format("{:.0f} % of the budget of {}", 100 * share, usd_text(budget)),
           share >= 1     ? Paint::alarm
           : share >= 0.8 ? Paint::caution
                          : Paint::plain);
}

void add_money(Flow& flow, const Board& board) {
  const Money& money = board.money;
  if (const auto usd = money.usd()) {
    flow.add(usd_text(*usd) + " so far", Paint::title);
    if (!money.is_priced())
      flow.add(fmt::format("for {:.0f} % of the hours: of the others no price is known",
                           100 * money.priced_hours / money.machine_hours),
               Paint::caution);
    if (money.usd_per_h) flow.add(usd_text(*money.usd_per_h) + "/h");
    if (money.usd_per_million) flow.add(usd_text(*money.usd_per_million) + " per million samples");
    if (money.forecast)
      flow.add(fmt::format("{} in all ({} to {})", usd_text(money.forecast->likely),
                           usd_text(money.forecast->low), usd_text(money.forecast->high)));
    if (money.budget_usd) add_budget(flow, *money.budget_usd, *usd);
  } else {
    flow.add(fmt::format("{:.2f} machine hours", money.machine_hours));
    flow.add("no price is known", Paint::dim);
  }
  if (money.left_s && !board.is_over()) flow.add(duration_text(*money.left_s) + " to go");
}

std::string who_waits(const std::vector<PeerId>& peers) {
  if (peers.size() == 1) return "peer " + peer_name(peers.front());
  if (peers.size() > kMostNamed) return fmt::format("{} peers", peers.size());
  std::vector<std::string> names;
  for (const PeerId peer : peers) names.push_back(peer_name(peer));
  return fmt::format("peers {}", fmt::join(names, ", "));
}

struct JointWait {
  std::string text;
  double since_s = 0;
  std::vector<PeerId> who;
};

/// Peers that wait in the same words together, the longest first.
std::vector<JointWait> waits_of(const Board& board) {
  std::map<std::string, JointWait> by_text;
  for (const BoardPeer& peer : board.peers) {
    if (!peer.wait || peer.wait->peers.empty()) continue;
    JointWait& wait = by_text[peer.wait->text];
    wait.since_s = wait.who.empty() ? peer.wait->since_s : std::min(wait.since_s, peer.wait->since_s);
    wait.text = peer.wait->text;
    wait.who.push_back(peer.peer);
  }
  std::vector<JointWait> waits;
  for (auto& [text, wait] : by_text) waits.push_back(std::move(wait));
  std::stable_sort(waits.begin(), waits.end(),
                   [](const JointWait& a, const JointWait& b) { return a.since_s < b.since_s; });
  return waits;
}

}  // namespace

std::vector<TerminalLine> head_lines(const Board& board, std::size_t width) {
  Flow flow(width);
  add_progress(flow, board);
  flow.break_line();
  add_model(flow, board);
  flow.break_line();
  add_money(flow, board);
  return flow.take();
}

std::vector<TerminalLine> wait_lines(const Board& board) {
  const std::vector<JointWait> waits = waits_of(board);
  std::vector<TerminalLine> shown;
  for (std::size_t i = 0; i < std::min(waits.size(), kMostWaits); ++i) {
    const double seconds = board.now_s - waits[i].since_s;
    shown.emplace_back().add(
        fmt::format("{}, {}: {}", who_waits(waits[i].who), duration_text(seconds), waits[i].text),
        Paint::caution);
  }
  if (waits.size() > kMostWaits)
    shown.back().add(fmt::format("; {} more waits", waits.size() - kMostWaits), Paint::dim);
  return shown;
}

std::vector<TerminalLine> delay_lines(const Board& board) {
  std::vector<TerminalLine> shown;
  if (board.is_over() || board.dead_since_s) return shown;
  for (const Delay& delay : board.delays) {
    if (!delay.since_s || shown.size() == kMostDelayLines) continue;
    const std::string usd = delay.usd_per_h ? fmt::format(", {}/h", usd_text(*delay.usd_per_h)) : "";
    shown.emplace_back()
        .add(fmt::format("{} costs {:.2g} s a round ({:.0f} %{}) since {}", what_of(delay), delay.round_s,
                         100 * delay.share, usd, time_of_day(*delay.since_s)),
             Paint::caution)
        .add(": " + remedy_of(delay));
  }
  return shown;
}

}  // namespace tw::monitor
