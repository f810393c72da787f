// SPDX-License-Identifier: Apache-2.0
#include "launch/fleet.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/result.h"

namespace tw::launch {
namespace {

std::string text_of(const Batch& batch) {
  std::string text;
  for (const Batch::Failure& failure : batch.failures) text += (text.empty() ? "" : "\n") + failure.message;
  return text;
}

Status status_of(const Batch& batch) {
  std::string text = text_of(batch);
  if (text.empty()) return Unit{};
  return Error{std::move(text)};
}

/// One of these peers is on its host: what failed for one fails for all of them there.
bool is_at(const Deployment& deployment, const std::set<std::uint32_t>& lost, const PeerJob& peer) {
  if (lost.contains(peer.number)) return true;
  return !peer.host.empty() && std::ranges::any_of(deployment.peers, [&](const PeerJob& other) {
    return lost.contains(other.number) && other.host == peer.host && other.home == peer.home;
  });
}

}  // namespace

Status perform(const Engine& engine, Action action, const Deployment& deployment,
               const std::vector<PeerJob>& peers) {
  if (peers.empty()) return Unit{};
  return status_of(run_all(engine.commands(action, deployment, peers)));
}

namespace {

Started start_group(const Engine& engine, const Deployment& deployment, const std::vector<PeerJob>& peers) {
  Started started;
  const Batch prepared = run_all(engine.commands(Action::prepare, deployment, peers));
  started.trouble = text_of(prepared);
  std::set<std::uint32_t> lost;
  for (const Batch::Failure& failure : prepared.failures) lost.insert(failure.peer);
  if (lost.contains(0)) return started;
  for (const PeerJob& peer : peers)
    if (!is_at(deployment, lost, peer)) started.peers.push_back(peer);
  // Those that begin the run wait for as many as there are.
  Deployment fewer = deployment;
  std::erase_if(fewer.peers, [&](const PeerJob& peer) { return is_at(deployment, lost, peer); });
  if (started.peers.empty()) return started;
  const Batch begun = run_all(engine.commands(Action::start, fewer, started.peers));
  if (begun.failures.empty()) return started;
  started.trouble += (started.trouble.empty() ? "" : "\n") + text_of(begun);
  for (const Batch::Failure& failure : begun.failures)
    std::erase_if(started.peers,
                  [&](const PeerJob& peer) { return failure.peer == 0 || failure.peer == peer.number; });
  return started;
}

void add_line(std::string& text, const std::string& line) {
  if (!line.empty()) text += (text.empty() ? "" : "\n") + line;
}

}  // namespace

Started start(const Engine& engine, const Deployment& deployment, const std::vector<PeerJob>& peers) {
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
    const Started started = start_group(engine, deployment, group);
    add_line(all.trouble, started.trouble);
    all.peers.insert(all.peers.end(), started.peers.begin(), started.peers.end());
    nobody_begins = !deployment.begun && has_peer(group, first.number) && !has_peer(all.peers, first.number);
  }
  return all;
}

Result<std::vector<PeerReport>> ask(const Engine& engine, const Deployment& deployment) {
  const Batch batch = run_all(engine.commands(Action::status, deployment, deployment.peers));
  TW_TRY(status_of(batch));
  return engine.states(deployment, batch.outputs);
}

PeerReport report_of(const std::vector<PeerReport>& reports, std::uint32_t number) {
  const auto found = std::ranges::find(reports, number, &PeerReport::number);
  return found == reports.end() ? PeerReport{.number = number} : *found;
}

bool may_live(PeerState state) {
  return state == PeerState::unknown || state == PeerState::waiting || state == PeerState::running ||
         state == PeerState::leaving;
}

}  // namespace tw::launch
