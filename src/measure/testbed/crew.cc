// SPDX-License-Identifier: Apache-2.0
#include "measure/testbed/crew.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/result.h"
#include "host/identity/authority.h"
#include "launch/exit_codes.h"
#include "measure/bench/bench_peer.h"
#include "measure/bench/watch.h"
#include "monitor/report/report.h"
#include "wire/token.h"

namespace tw::measure {
namespace {

using namespace std::chrono_literals;

/// What is measured is stamped by the peers; so it matters only for the moment of a disturbance.
constexpr Duration kLookEvery = 5ms;
constexpr Duration kLookOften = 1ms;
/// Bandwidth is probed while the first batch is computed (average/bandwidth/probe.h): here it takes no time.
constexpr Duration kFirstBatch = 2500ms;
constexpr std::int64_t kBenchTokenLasts_s = 86400;

std::string name_of(PeerId peer) { return "peer " + to_string(peer); }

std::optional<Instant> when(const std::vector<monitor::LogEntry>& log, world::Phase phase, Round round) {
  for (const monitor::LogEntry& entry : log)
    if (entry.event.phase() == phase && entry.event.round == round) return entry.event.at;
  return std::nullopt;
}

}  // namespace

Result<CrewOutcome> Crew::run() {
  TW_TRY(auto board, map_board(options_.folder + "/board"));
  board_ = std::move(board);
  TW_TRY(write_token());
  TW_TRY(start());
  TW_TRY(options_.trouble ? through_trouble() : run_rounds());
  TW_TRY(finish());
  return measure();
}

Status Crew::release(Round round) {
  if (const Status all = ready(round); !all) return all;
  if (const Status logs = read(); !logs) return logs;
  if (round == 1) std::this_thread::sleep_for(kFirstBatch);
  released_[round] = now();
  board_->release(static_cast<std::uint32_t>(round));
  return Unit{};
}

Status Crew::run_rounds() {
  for (Round round = 1; round <= options_.all_rounds(); ++round) {
    if (const Status released = release(round); !released) return released;
    if (round != options_.disturbed_round()) continue;
    if (const Status disturbed = disturb(); !disturbed) return disturbed;
  }
  return Unit{};
}

Status Crew::through_trouble() {
  Round round = 1;
  const auto go_on = [&] { return release(round++); };
  while (round <= options_.warm_up + options_.rounds + 1) {  // the last one is under way when trouble begins
    if (const Status released = go_on(); !released) return released;
  }
  const Round first_under = round - 1;
  if (const Status struck = strike(true); !struck) return struck;
  const Instant end = now() + options_.trouble->lasts;
  while (now() < end) {
    if (const Status released = go_on(); !released) return released;
  }
  if (const Status over = strike(false); !over) return over;
  const Round first_after = round;
  const auto whole_rounds_after = [&] {
    Round whole = 0;
    for (Round r = first_after; r + 1 < round; ++r) whole += all_took_part(r) ? 1 : 0;
    return whole;
  };
  while (whole_rounds_after() < CrewOptions::kRoundsAfter) {
    if (round >= options_.all_rounds())
      return Error{"the peers do not come together again after the trouble"};
    if (const Status released = go_on(); !released) return released;
  }
  for (auto& [r, logs] : logs_of_rounds(first_under, round - 1)) {
    const Instant begun = std::max(released_.at(r), first_call(logs, r).value_or(released_.at(r)));
    if (r < first_after)
      std::erase_if(logs, [&, r = r](const auto& log) { return !when(log.second, world::Phase::commit, r); });
    if (const auto times = times_of(logs, r, begun))
      (r < first_after ? under_s_ : after_s_).push_back(times.value().mean_s);
  }
  dismiss();
  return Unit{};
}

/// From first to before end.
std::map<Round, PeerLogs> Crew::logs_of_rounds(Round first, Round end) const {
  std::map<Round, PeerLogs> rounds;
  for (Round round = first; round < end; ++round) {
    for (const auto& [id, log] : logs_) rounds[round][id];
  }
  for (const auto& [id, log] : logs_) {
    for (const monitor::LogEntry& entry : log) {
      const Round round = entry.event.round;
      if (round >= first && round < end) rounds.at(round).at(id).push_back(entry);
    }
  }
  return rounds;
}

/// The last peer is the one that is stopped: another one leads, unless it took over.
Status Crew::strike(bool on) {
  if (options_.trouble->kind == TroubleKind::stop) {
    Peer& last = peers_.rbegin()->second;
    last.child.send_signal(on ? SIGSTOP : SIGCONT);
    last.disturbed = on;
  }
  return on ? trouble_->begin() : trouble_->end();
}

bool Crew::all_took_part(Round round) const {
  return std::ranges::all_of(logs_, [&](const auto& log) {
    return when(log.second, world::Phase::call, round) && when(log.second, world::Phase::commit, round);
  });
}

/// Rounds go on unmeasured until each of them has left.
void Crew::dismiss() {
  board_->release(CrewOptions::kEndless);
  for (auto& [id, peer] : peers_) peer.child.send_signal(SIGTERM);
}

Status Crew::write_token() {
  if (!options_.tls) return Unit{};
  return host::write_secret_file(token_path(),
                                 to_text(host::token_for_one_run("bench", kBenchTokenLasts_s)) + "\n");
}

Status Crew::start() {
  if (const Status first = launch(PeerId{1}, ""); !first) return first;
  std::string address;
  const Status listens = until_logged("peer 1 does not listen", [&] {
    for (const monitor::LogEntry& entry : logs_[PeerId{1}])
      if (const auto* start = entry.event.as<event::Start>()) address = start->address;
    return !address.empty();
  });
  if (!listens) return listens;
  for (std::uint64_t id = 2; id <= options_.hosts.size(); ++id) {
    if (const Status other = launch(PeerId{id}, address); !other) return other;
  }
  return Unit{};
}

Status Crew::launch(PeerId id, const std::string& join) {
  const Host& host = options_.hosts[id.value - 1];
  std::vector<std::string> words = host.enter;
  words.push_back(launch::own_path());
  std::vector<std::string> more = {"--board", options_.folder + "/board"};
  if (!host.site.empty()) more.insert(more.end(), {"--site", "testbed:" + host.site + ":a"});
  if (!join.empty()) more.insert(more.end(), {"--join", join});
  if (options_.tls) more.insert(more.end(), {"--token", "@" + token_path()});
  more.insert(more.end(), options_.more.begin(), options_.more.end());
  const BenchPeer peer{.id = id.value,
                       .peers = options_.hosts.size(),
                       .bytes = options_.bytes,
                       .codec = options_.codec,
                       .rounds = options_.all_rounds(),
                       .out = options_.folder,
                       .listen = host.address + ":0"};
  const std::vector<std::string> of_peer = words_of(peer, more);
  words.insert(words.end(), of_peer.begin(), of_peer.end());
  TW_TRY(auto child, launch::Child::start(words, output_of(id)));
  peers_.emplace(
      id, Peer{std::move(child), monitor::EventLogTail(options_.folder + "/" + monitor::event_log_name(id))});
  logs_[id];
  return Unit{};
}

Status Crew::read() {
  for (auto& [id, peer] : peers_) {
    TW_TRY(auto entries, peer.tail.poll());
    auto& log = logs_[id];
    log.insert(log.end(), entries.begin(), entries.end());
  }
  return Unit{};
}

Status Crew::look() {
  for (auto& [id, peer] : peers_) {
    const auto ending = peer.child.ending();
    const bool well = !ending || *ending == 0 || *ending == launch::kGoesOn;
    if (well || peer.disturbed) continue;
    return Error{
        fmt::format("{} failed (exit code {}): {}", name_of(id), *ending, launch::last_words(output_of(id)))};
  }
  return Unit{};
}

Status Crew::until(const std::string& what, Duration every, const std::function<bool()>& holds) {
  Status state = Unit{};
  const Status in_time = wait_until(what, every, [&] {
    state = look();
    return !state || holds();
  });
  return in_time ? state : in_time;
}

Status Crew::until_logged(const std::string& what, const std::function<bool()>& holds) {
  Status state = Unit{};
  const Status in_time = until(what, kLookOften, [&] {
    state = read();
    return !state || holds();
  });
  return in_time ? state : in_time;
}

Status Crew::ready(Round round) {
  std::string missing;
  const Status in_time = until("the peers are waited for", kLookEvery, [&] {
    missing.clear();
    for (const auto& [id, peer] : peers_) {
      if (!peer.disturbed && board_->ready[id.value - 1].load() < round) missing += " " + to_string(id);
    }
    return missing.empty();
  });
  if (in_time || missing.empty()) return in_time;
  return Error{fmt::format("{}; not ready for round {}: peers{}", in_time.error().message, round, missing)};
}

Status Crew::disturb() {
  const Round round = options_.disturbed_round();
  const Disturbance& disturbance = *options_.disturbance;
  const PeerId victim = disturbance.victim.value_or(leader_in(logs_));
  TW_TRY(auto undisturbed, measured_rounds());
  std::vector<double> usual_s;
  for (const RoundTimes& times : undisturbed) usual_s.push_back(times.commit_s);
  const Status called = until_logged(fmt::format("round {} is not called", round),
                                     [&] { return first_call(logs_, round).has_value(); });
  if (!called) return called;
  const Instant at = begin_of(round) + from_seconds(disturbance.fraction * median(usual_s));
  std::this_thread::sleep_for(at - now());
  Peer& peer = peers_.at(victim);
  peer.disturbed = true;
  peer.child.send_signal(disturbance.kind == Disturbance::Kind::kill ? SIGKILL : SIGSTOP);
  const Instant struck = now();
  const Status committed =
      until_logged(fmt::format("round {} is not committed without {}", round, name_of(victim)), [&] {
        return std::all_of(logs_.begin(), logs_.end(), [&](const auto& log) {
          return log.first == victim || when(log.second, world::Phase::commit, round);
        });
      });
  peer.child.send_signal(SIGCONT);
  if (!committed) return committed;
  const bool in_time = std::all_of(logs_.begin(), logs_.end(), [&](const auto& log) {
    return log.first == victim || *when(log.second, world::Phase::commit, round) > struck;
  });
  if (!in_time)
    return Error{"the round was over before it was disturbed: more --bytes, or a smaller fraction"};
  return committed;
}

Status Crew::finish() {
  const Status ended = until("not all peers end", kLookEvery, [&] {
    return std::all_of(peers_.begin(), peers_.end(),
                       [](auto& peer) { return peer.second.disturbed || peer.second.child.ending(); });
  });
  if (!ended) return ended;
  return read();
}

Instant Crew::begin_of(Round round) const {
  const Instant released = released_.at(round);
  return std::max(released, first_call(logs_, round).value_or(released));
}

Result<std::vector<RoundTimes>> Crew::measured_rounds() const {
  std::vector<RoundTimes> rounds;
  for (Round round = options_.warm_up + 1; round <= options_.warm_up + options_.rounds; ++round) {
    TW_TRY(auto times, times_of(logs_, round, begin_of(round)));
    rounds.push_back(std::move(times));
  }
  return rounds;
}

Result<CrewOutcome> Crew::measure() const {
  CrewOutcome outcome;
  TW_TRY(auto rounds, measured_rounds());
  outcome.rounds = std::move(rounds);
  std::vector<std::vector<monitor::LogEntry>> all;
  for (const auto& [id, log] : logs_) all.push_back(log);
  const monitor::Summary summary = summarize(all);
  outcome.identical = summary.identical;
  outcome.difference = summary.difference;
  outcome.under_s = under_s_;
  outcome.after_s = after_s_;
  if (!options_.disturbance) return outcome;
  PeerLogs survivors = logs_;
  std::erase_if(survivors, [&](const auto& log) { return peers_.at(log.first).disturbed; });
  TW_TRY(auto disturbed,
         times_of(survivors, options_.disturbed_round(), begin_of(options_.disturbed_round())));
  outcome.disturbed = std::move(disturbed);
  return outcome;
}

std::string Crew::token_path() const { return options_.folder + "/token"; }

std::string Crew::output_of(PeerId id) const { return options_.folder + "/peer-" + to_string(id) + ".log"; }

}  // namespace tw::measure
