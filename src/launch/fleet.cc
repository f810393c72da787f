// SPDX-License-Identifier: Apache-2.0
#include "launch/fleet.h"

#include <algorithm>

namespace tw::launch {
namespace {

Status status_of(const Batch& batch) {
  std::string text;
  for (const Error& failure : batch.failures) text += (text.empty() ? "" : "\n") + failure.message;
  if (text.empty()) return Unit{};
  return Error{text};
}

}  // namespace

Status perform(const Engine& engine, Action action, const Deployment& deployment,
               const std::vector<PeerJob>& peers) {
  if (peers.empty()) return Unit{};
  return status_of(run_all(engine.commands(action, deployment, peers)));
}

Status start(const Engine& engine, const Deployment& deployment, const std::vector<PeerJob>& peers) {
  if (const Status prepared = perform(engine, Action::prepare, deployment, peers); !prepared) return prepared;
  return perform(engine, Action::start, deployment, peers);
}

Result<std::vector<PeerReport>> ask(const Engine& engine, const Deployment& deployment) {
  const Batch batch = run_all(engine.commands(Action::status, deployment, deployment.peers));
  if (const Status done = status_of(batch); !done) return done.error();
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
