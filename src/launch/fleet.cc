// SPDX-License-Identifier: Apache-2.0
#include "launch/fleet.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/result.h"

namespace tw::launch {
namespace {

/// The time that what is left of peers has to end, and that between two looks.
constexpr auto kRemainsEnd = std::chrono::seconds(60);
constexpr auto kBetweenLooks = std::chrono::seconds(2);

void add_line(std::string& text, const std::string& line) {
  if (!line.empty()) text += (text.empty() ? "" : "\n") + line;
}

std::string text_of(const Batch& batch) {
  std::string text;
  for (const Batch::Failure& failure : batch.failures) add_line(text, failure.message);
  return text;
}

Status status_of(std::string text) {
  if (text.empty()) return Unit{};
  return Error{std::move(text)};
}

/// Ends what is left of the peers; what then lives, or failed, a line each.
std::string end_remains(const Engine& engine, Action action, const Deployment& deployment,
                        const std::vector<PeerJob>& peers, std::vector<Output> outputs) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begun = Clock::now();
  for (bool is_first = true;; is_first = false) {
    const Remains remains = engine.remains(action, deployment, peers, outputs);
    if (remains.living.empty() || remains.next.empty() || Clock::now() - begun > kRemainsEnd)
      return remains.living;
    if (!is_first) std::this_thread::sleep_for(kBetweenLooks);
    Batch batch = run_all(remains.next);
    if (!batch.failures.empty()) return text_of(batch);
    outputs = std::move(batch.outputs);
  }
}

/// One of these peers is on its host: what failed for one fails for all of them there.
bool is_at(const Deployment& deployment, const std::set<std::uint32_t>& lost, const PeerJob& peer) {
  if (lost.contains(peer.number)) return true;
  return !peer.host.empty() && std::ranges::any_of(deployment.peers, [&](const PeerJob& other) {
    return lost.contains(other.number) && other.host == peer.host && other.home == peer.home;
  });
}

/// Those of which a machine may know.
std::vector<PeerJob> tried(std::vector<PeerJob> peers) {
  std::erase_if(peers, [](const PeerJob& peer) { return peer.untried; });
  return peers;
}

}  // namespace

Status perform(const Engine& engine, Action action, const Deployment& deployment,
               const std::vector<PeerJob>& all, Duration at_least) {
  // Files of a start that was prepared in vain are there, too; a host that was never reached has none.
  const std::vector<PeerJob> peers = action == Action::remove ? all : tried(all);
  if (peers.empty()) return Unit{};
  std::vector<Command> commands = engine.commands(action, deployment, peers);
  for (Command& command : commands)
    if (command.limit > Duration{}) command.limit = std::max(command.limit, at_least);
  Batch batch = run_all(commands);
  std::erase_if(batch.failures, [&](const Batch::Failure& failure) {
    const auto peer = std::ranges::find(peers, failure.peer, &PeerJob::number);
    return peer != peers.end() && peer->untried;
  });
  std::string trouble = text_of(batch);
  if (action == Action::stop || action == Action::retire)
    add_line(trouble, end_remains(engine, action, deployment, peers, batch.outputs));
  return status_of(std::move(trouble));
}

namespace {

/// Takes those from the started ones that failed.
void take_failures(const Batch& batch, Started& started) {
  const auto take = [&](std::uint32_t number, std::vector<PeerJob>* to) {
    const auto is_hit = [&](const PeerJob& peer) { return number == 0 || number == peer.number; };
    if (to != nullptr) std::ranges::copy_if(started.peers, std::back_inserter(*to), is_hit);
    std::erase_if(started.peers, is_hit);
  };
  for (const Output& output : batch.outputs)
    if (output.command.in_vain == output.exit_code) take(output.command.peer, &started.in_vain);
  for (const Batch::Failure& failure : batch.failures)
    take(failure.peer, failure.why == Batch::Why::failed ? nullptr : &started.uncertain);
}

Started start_group(const Engine& engine, const Deployment& deployment, const std::vector<PeerJob>& peers,
                    const BeforeStart& before) {
  Started started;
  const Batch prepared = run_all(engine.commands(Action::prepare, deployment, peers));
  started.trouble = text_of(prepared);
  std::set<std::uint32_t> lost;
  for (const Batch::Failure& failure : prepared.failures) lost.insert(failure.peer);
  if (lost.contains(0)) return started;
  for (const PeerJob& peer : peers)
    if (!is_at(deployment, lost, peer)) started.peers.push_back(peer);
  if (started.peers.empty()) return started;
  // Those that begin the run wait for as many as there are.
  Deployment ready = deployment;
  std::erase_if(ready.peers, [&](const PeerJob& peer) { return is_at(deployment, lost, peer); });
  const std::vector<Command> commands = engine.commands(Action::start, ready, started.peers);
  // Nobody asked for what such a program would start, so nothing of it may live.
  if (const std::string missing = missing_program(commands); !missing.empty()) {
    add_line(started.trouble, missing);
    started.peers.clear();
    return started;
  }
  if (const Status may = before(ready, started.peers); !may) {
    add_line(started.trouble, may.error().message);
    started.peers.clear();
    return started;
  }
  const Batch begun = run_all(commands);
  add_line(started.trouble, text_of(begun));
  take_failures(begun, started);
  return started;
}

}  // namespace

Started start(const Engine& engine, const Deployment& deployment, const std::vector<PeerJob>& peers,
              const BeforeStart& before) {
  if (peers.empty()) return {};
  Started all;
  const PeerJob& first = first_of(deployment);
  bool nobody_begins = false;
  for (const std::vector<PeerJob>& group : engine.starts(deployment, peers)) {
    if (nobody_begins) {
      add_line(all.trouble,
               short_name(first) + " did not start, which begins the run: nor did those that would join it");
      break;
    }
    const Started started = start_group(engine, deployment, group, before);
    add_line(all.trouble, started.trouble);
    all.uncertain.insert(all.uncertain.end(), started.uncertain.begin(), started.uncertain.end());
    all.in_vain.insert(all.in_vain.end(), started.in_vain.begin(), started.in_vain.end());
    all.peers.insert(all.peers.end(), started.peers.begin(), started.peers.end());
    nobody_begins = !deployment.begun && has_peer(group, first.number) && !has_peer(all.peers, first.number);
  }
  return all;
}

namespace {

Result<std::vector<PeerReport>> ask_all(const Engine& engine, const Deployment& deployment) {
  if (deployment.peers.empty()) return std::vector<PeerReport>();
  Batch batch = run_all(engine.commands(Action::status, deployment, deployment.peers));
  // What is late may live: the engine knows about whom it was asked.
  std::erase_if(batch.failures,
                [](const Batch::Failure& failure) { return failure.why == Batch::Why::late; });
  TW_TRY(status_of(text_of(batch)));
  return engine.states(deployment, batch.outputs);
}

}  // namespace

Result<std::vector<PeerReport>> ask(const Engine& engine, const Deployment& deployment) {
  Deployment asked = deployment;
  asked.peers = tried(deployment.peers);
  TW_TRY(auto reports, ask_all(engine, asked));
  for (const PeerJob& peer : deployment.peers)
    if (peer.untried) reports.push_back({.number = peer.number});
  std::ranges::sort(reports, {}, &PeerReport::number);
  return reports;
}

PeerReport report_of(const std::vector<PeerReport>& reports, std::uint32_t number) {
  const auto found = std::ranges::find(reports, number, &PeerReport::number);
  return found == reports.end() ? PeerReport{.number = number} : *found;
}

std::vector<PeerJob> known_peers(const std::vector<PeerJob>& peers, const std::vector<PeerReport>& reports) {
  std::vector<PeerJob> known = peers;
  std::erase_if(known, [&](const PeerJob& peer) {
    return report_of(reports, peer.number).state == PeerState::unknown;
  });
  return known;
}

bool may_live(PeerState state) {
  return state == PeerState::unknown || state == PeerState::waiting || state == PeerState::running ||
         state == PeerState::leaving;
}

}  // namespace tw::launch
