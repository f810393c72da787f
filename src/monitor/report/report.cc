// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/median.h"
#include "monitor/report/cost.h"
#include "monitor/report/history.h"

namespace tw::monitor {

namespace {

/// Undisturbed rounds on each side that give the usual time of a round.
constexpr std::size_t kNeighbours = 5;

/// From one commit to the next: the time line has no gap and no overlap, whatever each peer does meanwhile.
struct Stretch {
  Round round = 0;
  Instant begin, end;
  bool disturbed = false;

  bool meets(Instant from, Instant to) const { return begin <= to && from < end; }
};

std::vector<Stretch> stretches(const RunHistory& history) {
  std::vector<Stretch> result;
  std::optional<Instant> before;
  for (const auto& [number, round] : history.rounds) {
    if (!round.committed) continue;
    const std::optional<Instant> begin = before ? before : round.begun;
    if (begin)
      result.push_back(
          {.round = number, .begin = *begin, .end = *round.committed, .disturbed = round.disturbed});
    before = round.committed;
  }
  for (Stretch& stretch : result)
    for (const LossFacts& loss : history.losses)
      if (stretch.meets(loss.begun, loss.detected)) stretch.disturbed = true;
  return result;
}

std::optional<double> extra_seconds(const std::vector<Stretch>& rounds, const LossFacts& loss) {
  if (loss.detected == kNever) return std::nullopt;
  double taken_s = 0;
  double count = 0;
  std::vector<double> before_s, after_s;
  for (const Stretch& round : rounds) {
    const double duration_s = to_seconds(round.end - round.begin);
    if (round.meets(loss.begun, loss.detected)) {
      taken_s += duration_s;
      count += 1;
    } else if (!round.disturbed) {
      (round.end <= loss.begun ? before_s : after_s).push_back(duration_s);
    }
  }
  if (before_s.size() > kNeighbours) before_s.erase(before_s.begin(), before_s.end() - kNeighbours);
  if (after_s.size() > kNeighbours) after_s.resize(kNeighbours);
  before_s.insert(before_s.end(), after_s.begin(), after_s.end());
  if (before_s.empty() || count == 0) return std::nullopt;
  return taken_s - count * median(std::move(before_s));
}

void sum_up_samples(const RunHistory& history, Summary& summary) {
  std::optional<Instant> begin, end;
  std::uint64_t before = 0;
  Round last = 0;
  for (const auto& [number, round] : history.rounds) {
    if (round.begun && !begin) begin = round.begun;
    if (!round.committed) continue;
    // A log that begins in the middle of a run does not say what was there before, only what its peers added.
    const bool known = number == 1 || before > 0;
    summary.samples +=
        known && round.samples_total > before ? round.samples_total - before : round.own_samples;
    summary.samples_carried = summary.samples_carried.value_or(0) + round.carried;
    before = round.samples_total;
    if (summary.rounds > 0) summary.unlogged_rounds += number - last - 1;
    last = number;
    ++summary.rounds;
    end = round.committed;
  }
  if (begin && end && *end > *begin)
    summary.samples_per_s = static_cast<double>(summary.samples) / to_seconds(*end - *begin);
}

void average_phases(const RunHistory& history, Summary& summary) {
  double calc_s = 0, comm_s = 0, count = 0;
  for (const auto& [number, round] : history.rounds) {
    if (!round.committed || !round.leader) continue;
    const auto calc = round.calc_s.find(*round.leader);
    const auto comm = round.comm_s.find(*round.leader);
    if (calc == round.calc_s.end() || comm == round.comm_s.end()) continue;
    calc_s += calc->second;
    comm_s += comm->second;
    count += 1;
  }
  if (count == 0) return;
  summary.calc_s = calc_s / count;
  summary.comm_s = comm_s / count;
  if (comm_s > 0) summary.granularity = calc_s / comm_s;
}

/// The peer came back on another machine, where it began another log.
bool goes_on_elsewhere(const std::vector<LogEntry>& log, const std::vector<std::vector<LogEntry>>& logs) {
  return std::ranges::any_of(logs, [&](const std::vector<LogEntry>& other) {
    return !other.empty() && other.back().writer == log.back().writer &&
           other.back().unix_nanos > log.back().unix_nanos;
  });
}

/// Logs that end while those of other peers go on, without a loss of their writer.
void add_logs_that_end_early(const std::vector<std::vector<LogEntry>>& logs, const RunHistory& history,
                             Summary& summary) {
  Round last = 0;
  std::int64_t end_unix_nanos = 0;
  for (const auto& [number, round] : history.rounds)
    if (round.committed) last = number;
  for (const std::vector<LogEntry>& log : logs)
    if (!log.empty()) end_unix_nanos = std::max(end_unix_nanos, log.back().unix_nanos);
  for (const std::vector<LogEntry>& log : logs) {
    const auto peer = log.empty() ? history.peers.end() : history.peers.find(log.back().writer);
    if (peer == history.peers.end() || log.back().event.round + 1 >= last) continue;
    if (goes_on_elsewhere(log, logs)) continue;
    if (!peer->second.stayed() || peer->second.stopped || peer->second.killed) continue;
    summary.missing.push_back(
        {.peer = peer->first,
         .events = {},
         .from_unix_nanos = log.back().unix_nanos,
         .to_unix_nanos = std::max(end_unix_nanos, log.back().unix_nanos),
         .why = fmt::format("its log ends in round {} without a stop, other logs go on to round {}",
                            log.back().event.round, last)});
  }
}

bool lacks_events(const Summary& summary, PeerId peer) {
  return std::ranges::any_of(summary.missing, [&](const MissingEvents& gap) { return gap.peer == peer; });
}

/// Where two peers have other parameters after one record; empty: nowhere.
std::string first_difference(const RunHistory& history) {
  for (const auto& [number, round] : history.rounds) {
    for (const auto& [record, digests] : round.digests) {
      const auto& [first_peer, first_digest] = *digests.begin();
      for (const auto& [peer, digest] : digests)
        if (digest != first_digest)
          return fmt::format("after round {}, peer {} has {} and peer {} has {}", number,
                             to_string(first_peer), first_digest, to_string(peer), digest);
    }
  }
  return {};
}

bool has_parameters(const RoundFacts& round, PeerId peer) {
  return std::ranges::any_of(round.digests, [&](const auto& after) {
    return std::ranges::any_of(after.second, [&](const auto& one) { return one.first == peer; });
  });
}

void compare_parameters(const RunHistory& history, Summary& summary) {
  summary.difference = first_difference(history);
  std::optional<Round> common;
  for (const auto& [id, peer] : history.peers)
    if (peer.stayed() && !peer.digest.empty())
      common = std::min(common.value_or(peer.digest_round), peer.digest_round);
  const bool applied = std::any_of(history.rounds.begin(), history.rounds.end(),
                                   [](const auto& round) { return !round.second.digests.empty(); });
  summary.identical = applied && summary.difference.empty();
  if (!common || !summary.identical) return;
  for (const auto& [id, peer] : history.peers) {
    if (!peer.stayed() || !summary.identical || lacks_events(summary, id)) continue;
    if (has_parameters(history.rounds.at(*common), id)) continue;
    summary.difference = fmt::format("peer {} has no parameters of round {}", to_string(id), *common);
    summary.identical = false;
  }
}

}  // namespace

std::optional<double> number_in(const world::Event& event, std::string_view name) {
  for (const auto& [known, value] : event.numbers)
    if (known == name) return value;
  return std::nullopt;
}

namespace {

GivenNotice given(const NoticeFacts& notice) {
  const world::Event& told = notice.told;
  GivenNotice result{.peer = notice.peer,
                     .round = told.round,
                     .source = told.source,
                     .kind = std::string(name_of(told.cause)),
                     .deadline_s = number_in(told, "deadline_s"),
                     .used_s = {}};
  const bool goes = told.cause == world::Cause::preempt || told.cause == world::Cause::maintenance;
  if (goes && notice.stopped) result.used_s = to_seconds(*notice.stopped - told.at);
  return result;
}

std::uint64_t count_in(const world::Event& event, std::string_view name) {
  const double count = number_in(event, name).value_or(0);
  return count >= 0 && count < 0x1p53 ? static_cast<std::uint64_t>(count) : 0;
}

void tell_of_leavings(const RunHistory& history, Summary& summary) {
  for (const HandOverFacts& handover : history.handovers) {
    summary.handovers.push_back({.peer = handover.peer,
                                 .round = handover.told.round,
                                 .to = *handover.told.peer,
                                 .samples = count_in(handover.told, "samples"),
                                 .bytes = count_in(handover.told, "bytes"),
                                 .took_s = number_in(handover.told, "took_s"),
                                 .round_left_s = number_in(handover.told, "round_left_s")});
    summary.leavings.samples_handed_over += summary.handovers.back().samples;
  }
  std::uint64_t& again = summary.leavings.microbatches_again;
  for (const auto& [where, microbatches] : history.given_out_again) again += microbatches;
  if (again == 0 || history.microbatch)
    summary.leavings.samples_again = again * history.microbatch.value_or(0);
}

std::optional<std::uint64_t> given_out_again(const RunHistory& history, const LossFacts& loss) {
  const auto found = history.given_out_again.find({loss.round, loss.peer});
  return found == history.given_out_again.end() ? std::nullopt : std::optional(found->second);
}

/// Mean over the newest batch of which peers told it.
std::optional<double> loss_of(const RunHistory& history) {
  for (auto round = history.rounds.rbegin(); round != history.rounds.rend(); ++round)
    if (const RoundFacts& facts = round->second; facts.loss_samples > 0)
      return facts.loss_sum / static_cast<double>(facts.loss_samples);
  return std::nullopt;
}

}  // namespace

Summary summarize(const std::vector<std::vector<LogEntry>>& logs) {
  const std::vector<LogEntry> entries = merge(logs);
  const HeldHistory held(entries);
  const RunHistory history = gather_history(entries, held.dropped_entries());
  Summary summary;
  summary.dropped = held.dropped_rounds();
  tell_traffic(summary, entries);
  for (const std::vector<LogEntry>& log : logs)
    for (MissingEvents& gap : missing_events(log)) summary.missing.push_back(std::move(gap));
  add_logs_that_end_early(logs, history, summary);
  sum_up_samples(history, summary);
  average_phases(history, summary);
  compare_parameters(history, summary);
  summary.samples_skipped = history.skipped.size();
  summary.insecure = history.insecure;
  summary.loss = loss_of(history);
  const std::map<PeerId, double> hours = machine_hours(logs);
  for (const auto& [id, peer] : history.peers) {
    std::uint64_t samples = 0;
    for (const auto& [round, count] : peer.contributed) samples += count;
    const auto own_hours = hours.find(id);
    if (own_hours != hours.end()) summary.cost.machine_hours += own_hours->second;
    summary.peers.push_back(
        {.id = id,
         .rounds = peer.contributed.size(),
         .samples = samples,
         .digest = peer.digest,
         .bytes_sent = peer.bytes_sent,
         .bytes_received = peer.bytes_received,
         .hours = own_hours == hours.end() ? std::nullopt : std::optional(own_hours->second),
         .usd_per_h = peer.usd_per_h,
         .usd = {}});
  }
  const std::vector<Stretch> rounds = stretches(history);
  for (const LossFacts& loss : history.losses)
    summary.lost.push_back({.peer = loss.peer,
                            .round = loss.round,
                            .detected_s = loss.detected_s,
                            .extra_s = extra_seconds(rounds, loss),
                            .why = loss.why,
                            .microbatches_again = given_out_again(history, loss)});
  for (const ArrivalFacts& arrival : history.arrivals) {
    std::optional<double> seconds;
    if (arrival.since && arrival.contributed) seconds = to_seconds(*arrival.contributed - *arrival.since);
    summary.joined.push_back({.peer = arrival.peer, .round = arrival.round, .seconds = seconds});
  }
  for (const NoticeFacts& notice : history.notices) summary.notices.push_back(given(notice));
  tell_of_leavings(history, summary);
  for (const auto& [peer, round] : history.departures) summary.left.push_back({.peer = peer, .round = round});
  return summary;
}

}  // namespace tw::monitor
