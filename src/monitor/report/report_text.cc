// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/peer_name.h"
#include "base/text/printable.h"
#include "base/text/quantity.h"
#include "monitor/terminal/terminal_numbers.h"

namespace tw::monitor {

namespace {

/// Logs hold texts of programs and of other peers, which make no line of their own.
std::string line(const char* name, const std::string& text) {
  return fmt::format("{:<15}{}\n", name, printable_line(text));
}

std::string quantity(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.2f} GB", bytes / 1e9);
  if (bytes >= 1e6) return fmt::format("{:.1f} MB", bytes / 1e6);
  return fmt::format("{:.0f} kB", bytes / 1e3);
}

std::string traffic(const BoardUsage& usage) {
  if (usage.bytes_sent == 0 && usage.bytes_received == 0) return "";
  return fmt::format("{:>12}{:>12}", quantity(static_cast<double>(usage.bytes_sent)),
                     quantity(static_cast<double>(usage.bytes_received)));
}

/// Short of its goal.
std::string render_end(const Board& board) {
  if (board.ended.empty()) return "";
  const std::string goal = board.last_round ? fmt::format(" of {}", *board.last_round) : "";
  return line("over", fmt::format("{}, in round {}{}", board.ended, board.round, goal));
}

std::string render_phases(const Summary& summary) {
  if (!summary.calc_s || !summary.comm_s) return "";
  const std::string share =
      summary.granularity() ? fmt::format("{:.2f}", *summary.granularity()) : "no communication";
  return line("granularity", fmt::format("{} (calculation {:.3f} s, communication {:.3f} s a round)", share,
                                         *summary.calc_s, *summary.comm_s));
}

/// "accuracy 0.9342 after round 500 (6 in all, 0.8120 to 0.9342)"
std::string render_evaluation(const Board& board, const BoardEvaluation& newest) {
  std::size_t count = 0;
  double least = newest.value, most = newest.value;
  for (const BoardEvaluation& one : board.evaluations) {
    if (one.name != newest.name) continue;
    ++count;
    least = std::min(least, one.value);
    most = std::max(most, one.value);
  }
  std::string text = fmt::format("{} {:.4g} after round {}", newest.name, newest.value, newest.round);
  if (count > 1) text += fmt::format(" ({} in all, {:.4g} to {:.4g})", count, least, most);
  return text;
}

std::string render_loss(const LostPeer& lost) {
  std::string text = fmt::format("peer {} in round {}", peer_name(lost.peer), lost.round);
  text += lost.detected_s ? fmt::format(", detected after {:.3f} s", *lost.detected_s) : ", nobody noticed";
  if (lost.extra_s) text += fmt::format(", cost {:+.3f} s", *lost.extra_s);
  if (lost.microbatches_again) text += fmt::format(", microbatches again: {}", *lost.microbatches_again);
  if (!lost.why.empty()) text += fmt::format(" ({})", lost.why);
  return line("lost", text);
}

/// Those that no other line of the report tells.
std::string render_interruption(const Interruption& one) {
  const std::string who = "peer " + peer_name(one.peer);
  if (one.kind == Interruption::Kind::left)
    return line("left", fmt::format("{} in round {}", who, one.round));
  if (one.kind != Interruption::Kind::resumed) return "";
  return line("resumed", fmt::format("after round {}: {} {}", one.round, who, one.detail));
}

std::string render_arrival(const JoinedPeer& joined) {
  const std::string seconds = joined.seconds ? fmt::format("contributed after {:.3f} s", *joined.seconds)
                                             : std::string("contributed nothing");
  return line("joined",
              fmt::format("peer {} in round {}, {}", peer_name(joined.peer), joined.round, seconds));
}

std::string render_notice(const GivenNotice& notice) {
  std::string text = fmt::format("peer {} in round {}: {} by {}", peer_name(notice.peer), notice.round,
                                 notice.kind, notice.source);
  if (notice.deadline_s) text += fmt::format(" in {:.0f} s", *notice.deadline_s);
  if (notice.used_s) text += fmt::format(", out after {:.2f} s", *notice.used_s);
  return line("notice", text);
}

std::string render_handover(const HandOver& handover) {
  std::string text = fmt::format("peer {} in round {} to peer {}: {} samples, {}", peer_name(handover.peer),
                                 handover.round, peer_name(handover.to), grouped(handover.samples),
                                 quantity(static_cast<double>(handover.bytes)));
  if (handover.took_s) text += fmt::format(" in {:.2f} s", *handover.took_s);
  if (handover.round_left_s) text += fmt::format("; the round had {:.1f} s to go", *handover.round_left_s);
  return line("handover", text);
}

std::string render_leavings(const Summary& summary) {
  std::string text;
  if (summary.board.ledger.handed_over > 0)
    text += line("saved", fmt::format("{} samples, handed over", grouped(summary.board.ledger.handed_over)));
  if (summary.microbatches_again.value_or(0) == 0) return text;
  const std::string samples =
      summary.samples_again ? fmt::format(", at most {} samples", grouped(*summary.samples_again)) : "";
  const auto again_usd = summary.usd_again();
  const std::string usd = again_usd ? fmt::format(" ({} USD)", usd_number(*again_usd)) : "";
  return text + line("again", fmt::format("{} microbatches of lost peers, done or only leased to them{}{}",
                                          *summary.microbatches_again, samples, usd));
}

std::string render_dropped(const DroppedRounds& dropped) {
  const std::string usd = dropped.usd ? fmt::format(", {} USD", usd_number(*dropped.usd)) : "";
  return line("dropped",
              fmt::format("{}, from {} to {}{}", to_string(dropped), calendar_time(dropped.begun_unix_nanos),
                          calendar_time(dropped.ended_unix_nanos), usd));
}

std::string render_cost(const Money& money) {
  const std::string text = line("machine hours", fmt::format("{:.3f}", money.machine_hours));
  if (!money.usd()) return text;
  const std::string rest = money.is_priced()
                               ? ""
                               : fmt::format(" for {:.3f} hours; of the other {:.3f} no price is known",
                                             money.priced_hours, money.machine_hours - money.priced_hours);
  const std::string traffic =
      money.egress_usd.value_or(0) > 0 ? fmt::format(" ({} for traffic)", usd_number(*money.egress_usd)) : "";
  return text + line("cost", fmt::format("{} USD{}{}", usd_number(*money.usd()), traffic, rest));
}

/// Less than this share of the run is not worth a line; nor is what delayed a run that only tries something.
constexpr double kLeastShare = 0.01;
constexpr double kShortestRun_s = 10;
constexpr std::size_t kMostDelays = 5;

std::string render_delays(const Board& board) {
  if (board.rounds.empty()) return "";
  const double run_s = board.rounds.back().committed_s.value_or(board.now_s) - board.rounds.front().begun_s;
  std::vector<Delay> delays = board.delays;
  std::ranges::stable_sort(delays, std::greater(), &Delay::seconds);
  std::string text;
  for (std::size_t i = 0; i < std::min(delays.size(), kMostDelays); ++i) {
    const Delay& delay = delays[i];
    if (run_s < kShortestRun_s || delay.seconds < kLeastShare * run_s) break;
    const std::string usd = delay.usd ? fmt::format(", {} USD", usd_number(*delay.usd)) : "";
    text +=
        line("delayed by", fmt::format("{}: {:.3g} s ({:.0f} % of the run{}); {}", what_of(delay),
                                       delay.seconds, 100 * delay.seconds / run_s, usd, remedy_of(delay)));
  }
  return text;
}

/// Requests cost fractions of a cent for a long time.
std::string price(const std::optional<double>& usd) {
  return usd ? fmt::format("{:.2g} USD", *usd) : "price not known";
}

std::string render_store(const char* name, const std::string& store, const StoreTraffic& traffic) {
  if (traffic.requests == 0 && traffic.bytes == 0) return "";
  return line(
      name, fmt::format("{}: {} ({}), {} requests ({})", store, quantity(static_cast<double>(traffic.bytes)),
                        price(traffic.usd), traffic.requests, price(traffic.requests_usd)));
}

std::string render_store(const StoreUsed& used) {
  return render_store("read from", used.store, used.read) +
         render_store("written to", used.store, used.written);
}

std::string render_identity(const Summary& summary) {
  if (!summary.difference.empty()) return line("parameters", "DIFFER: " + summary.difference);
  if (!summary.identical) return line("parameters", "none were logged, or peers train apart");
  if (std::ranges::find(summary.missing, kNoLog, &MissingEvents::why) != summary.missing.end())
    return line("parameters", "identical in every round on the peers that have a log here");
  return line("parameters", "identical on all peers in every round");
}

}  // namespace

std::string render(const Summary& summary) {
  const std::string unlogged =
      summary.unlogged_rounds > 0 ? fmt::format(", and {} that no log holds", summary.unlogged_rounds) : "";
  std::string text = line("rounds", std::to_string(summary.rounds) + unlogged) + render_end(summary.board);
  const double lately = summary.board.speed.samples_per_s;
  const std::string of_late =
      lately > 0 ? fmt::format(", {} over the last ten rounds", rate_text(lately)) : "";
  text += line("samples", fmt::format("{} ({} samples/s from its beginning{})", grouped(summary.samples),
                                      known(summary.samples_per_s, rate_text), of_late));
  if (summary.samples_carried.value_or(0) > 0)
    text += line("carried", fmt::format("{} samples, lost too late for their round: a later one took them in "
                                        "place of new ones",
                                        grouped(*summary.samples_carried)));
  if (summary.board.ledger.skipped > 0)
    text += line("skipped",
                 fmt::format("{} samples that could not be had", grouped(summary.board.ledger.skipped)));
  if (summary.loss) text += line("loss", fmt::format("{:.4f}", *summary.loss));
  for (const BoardEvaluation& one : newest_evaluations(summary.board))
    text += line("evaluated", render_evaluation(summary.board, one));
  text += render_phases(summary);
  if (const auto hidden = summary.board.speed.hidden)
    text += line("overlap", fmt::format("{:.0f} % of averaging was hidden by computing", 100 * *hidden));
  if (summary.insecure.value_or(false))
    text +=
        line("insecure", "without TLS (--insecure): anybody on the network could read and change this run");
  for (const LostPeer& lost : summary.lost) text += render_loss(lost);
  for (const JoinedPeer& joined : summary.joined) text += render_arrival(joined);
  for (const GivenNotice& notice : summary.notices) text += render_notice(notice);
  if (summary.handovers)
    for (const HandOver& handover : *summary.handovers) text += render_handover(handover);
  for (const Interruption& one : summary.board.interruptions) text += render_interruption(one);
  text += render_leavings(summary);
  for (const DroppedRounds& dropped : summary.dropped) text += render_dropped(dropped);
  text += render_delays(summary.board);
  for (const StoreUsed& used : stores_of(summary.board.links)) text += render_store(used);
  text += render_cost(summary.board.money);
  for (const MissingEvents& gap : summary.missing) text += line("missing", to_string(gap));
  text += render_identity(summary);

  text += fmt::format("\n{:<22}{:>8}{:>12}{:>12}{:>12}  {}\n", "peer", "rounds", "samples", "sent",
                      "received", "final parameters");
  for (const BoardPeer& peer : summary.board.peers)
    text += fmt::format("{:<22}{:>8}{:>12}{:>24}  {}\n", peer_name(peer.peer), peer.rounds,
                        grouped(peer.samples), traffic(peer.usage), printable_line(peer.digest));
  return text;
}

}  // namespace tw::monitor
