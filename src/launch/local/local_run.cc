// SPDX-License-Identifier: Apache-2.0
#include "launch/local/local_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <system_error>

#include "base/text/printable.h"

namespace tw::launch {

namespace {

/// Well below the time of a round of the smallest models, so that kills and joins come in the round they are
/// for.
constexpr Duration kLookAtPeersEvery = std::chrono::milliseconds(4);
constexpr std::size_t kJoinAddresses = 3;
constexpr Duration kTwice = std::chrono::seconds(1);

std::string name_of(PeerId id) { return "peer " + to_string(id); }

bool is_full(const std::string& folder) {
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  return !error && space.available == 0;
}

}  // namespace

LocalRun::LocalRun(host::Loop& loop, LocalOptions options, Say say)
    : loop_(loop),
      options_(std::move(options)),
      say_(std::move(say)),
      script_(options_.kills, options_.joins) {}

LocalOutcome LocalRun::run() {
  auto log =
      monitor::JsonEventLog::open(options_.out + "/" + monitor::event_log_name(PeerId{}), PeerId{}, loop_);
  if (!log) {
    outcome_.failures.push_back(log.error().message);
    return outcome_;
  }
  log_ = std::move(log).value();
  loop_.on_signal([this](int signal) { on_signal(signal); }, {SIGINT, SIGTERM, SIGUSR1, SIGUSR2});
  say_(fmt::format("starting {} peers", options_.peers));
  launch(0);
  look();
  loop_.run();

  for (const std::string& pending : script_.pending())
    say_(pending + " did not come about: the run was over before");
  const bool somebody_stayed =
      std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) { return !peer.second.killed; });
  if (!somebody_stayed)
    outcome_.failures.push_back("all peers were killed: nobody was left to finish the run");
  if (somebody_finished_) outcome_.goes_on = false;
  return outcome_;
}

void LocalRun::launch(Round round) {
  const PeerId id{++last_id_};
  std::vector<std::string> arguments = {
      "train",       options_.run_file,  "--id",      to_string(id),
      "--out",       options_.out,       "--threads", std::to_string(options_.threads),
      "--log-limit", options_.log_limit, "--quiet"};
  // What the first one finds in a checkpoint folder is of a run whose peers are gone; later ones never begin.
  if (id.value == 1)
    arguments.insert(arguments.end(), {"--wait-for", std::to_string(options_.peers), "--no-rejoin"});
  if (id.value > 1) arguments.emplace_back("--rejoin");
  for (const std::string& address : live_addresses()) arguments.insert(arguments.end(), {"--join", address});
  if (options_.token.empty()) arguments.insert(arguments.end(), {"--insecure"});
  if (!options_.token.empty()) arguments.insert(arguments.end(), {"--token", "@" + options_.token});
  if (!options_.usd_per_h.empty()) arguments.insert(arguments.end(), {"--usd-per-h", options_.usd_per_h});
  if (!options_.site.empty()) arguments.insert(arguments.end(), {"--site", options_.site});
  for (const std::string& setting : options_.settings) arguments.insert(arguments.end(), {"--set", setting});

  log(world::Phase::start, id, round);
  auto child = Child::start_self(arguments, output_of(id));
  if (!child) return outcome_.failures.push_back(child.error().message);
  monitor::EventLogTail tail(options_.out + "/" + monitor::event_log_name(id));
  peers_.emplace(id, Peer{.child = std::move(child).value(), .tail = std::move(tail), .address = {}});
}

void LocalRun::look() {
  for (auto& [id, peer] : peers_) follow(peer);
  if (!all_launched_ && is_full(options_.out)) return give_up_for_want_of_space();
  const auto first = peers_.find(PeerId{1});
  if (!all_launched_ && first != peers_.end() && !first->second.address.empty()) {
    all_launched_ = true;
    while (last_id_ < options_.peers && signals_ == 0) launch(0);
  }
  if (signals_ == 0) act(script_.step(loop_.now()));
  for (auto& [id, peer] : peers_) reap(id, peer);
  end_late_comers();
  if (everybody_ended()) return loop_.stop();
  loop_.at(loop_.now() + kLookAtPeersEvery, [this] { look(); });
}

/// The first peer says in its log where it listens: without one, the others cannot find it.
void LocalRun::give_up_for_want_of_space() {
  outcome_.failures.push_back(fmt::format(
      "{}: no space left for the event logs, by which the peers find each other; free some, or give --out",
      options_.out));
  for (auto& [id, peer] : peers_) {
    peer.killed = true;
    peer.child.send_signal(SIGKILL);
  }
  loop_.stop();
}

void LocalRun::follow(Peer& peer) {
  if (peer.ended) return;
  auto entries = peer.tail.poll();
  if (!entries) {
    outcome_.failures.push_back(entries.error().message);
    peer.child.send_signal(SIGKILL);
    return;
  }
  for (const monitor::LogEntry& entry : entries.value()) {
    if (entry.event.phase == world::Phase::start) peer.address = entry.event.text("address");
    if (entry.event.phase == world::Phase::accumulate) peer.took_part = true;
    if (!peer.killed) take(entry);
  }
}

void LocalRun::take(const monitor::LogEntry& entry) {
  script_.note(entry);
  if (script_.leader() != entry.writer) return;
  if (const auto line = progress_.line_for(entry.event)) say_(printable_line(*line));
}

void LocalRun::act(const Script::Due& due) {
  for (const auto& [victim, round] : due.kills) kill_peer(victim, round);
  for (const Round round : due.joins) {
    launch(round);
    say_(fmt::format("round {}  started {}, which joins", round, name_of(PeerId{last_id_})));
  }
}

void LocalRun::kill_peer(PeerId id, Round round) {
  Peer& peer = peers_.at(id);
  peer.killed = true;
  log(world::Phase::kill, id, round);
  peer.child.send_signal(SIGKILL);
  script_.note_end(id);
  say_(fmt::format("round {}  killed {}", round, name_of(id)));
}

void LocalRun::reap(PeerId id, Peer& peer) {
  if (peer.ended) return;
  const std::optional<int> ending = peer.child.ending();
  if (!ending) return;
  follow(peer);
  peer.ended = true;
  script_.note_end(id);
  somebody_finished_ = somebody_finished_ || *ending == 0;
  if (*ending == kGoesOn) outcome_.goes_on = true;
  constexpr int kInterrupted = 128 + SIGINT;
  const bool as_told = *ending == kGoesOn || (signals_ > 0 && *ending == kInterrupted);
  if (peer.killed || *ending == 0 || as_told || signals_ > 1) return;
  outcome_.failures.push_back(
      fmt::format("{} failed (exit code {}): {}", name_of(id), *ending, last_words(output_of(id))));
  say_(fmt::format("{} failed (exit code {})", name_of(id), *ending));
}

/// Peers that were still on their way into the run when its last members finished: nobody is left to let them
/// in.
void LocalRun::end_late_comers() {
  const bool run_is_over = std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) {
    return peer.second.took_part && peer.second.ended && !peer.second.killed;
  });
  const bool somebody_trains = std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) {
    return peer.second.took_part && !peer.second.ended;
  });
  if (!run_is_over || somebody_trains || signals_ > 0) return;
  for (auto& [id, peer] : peers_) {
    if (peer.ended || peer.killed) continue;
    peer.killed = true;
    peer.child.send_signal(SIGKILL);
    say_(fmt::format("{} came too late: the run was over before it had the state", name_of(id)));
  }
}

void LocalRun::on_signal(int signal) {
  // Schedulers send SIGTERM twice within milliseconds, and SIGUSR1 well ahead of it.
  const Instant now = loop_.now();
  const bool repeated = signal != SIGTERM || now - signalled_at_ < kTwice;
  if (signal != SIGINT && signals_ > 0 && repeated) return;
  ++signals_;
  signalled_at_ = now;
  if (signal == SIGINT) outcome_.interrupted = true;
  say_(signals_ == 1 ? "the peers leave after this round; once more to kill them" : "killing all peers");
  for (auto& [id, peer] : peers_)
    if (!peer.ended) peer.child.send_signal(signals_ == 1 ? signal : SIGKILL);
}

bool LocalRun::everybody_ended() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer.second.ended; });
}

std::vector<std::string> LocalRun::live_addresses() const {
  std::vector<std::string> addresses;
  for (const auto& [id, peer] : peers_)
    if (!peer.killed && !peer.ended && !peer.address.empty() && addresses.size() < kJoinAddresses)
      addresses.push_back(peer.address);
  return addresses;
}

std::string LocalRun::output_of(PeerId id) const {
  return fmt::format("{}/peer-{}.log", options_.out, to_string(id));
}

void LocalRun::log(world::Phase phase, PeerId about, Round round) {
  log_->emit({.at = loop_.now(), .phase = phase, .round = round, .peer = about});
}

}  // namespace tw::launch
