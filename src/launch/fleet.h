// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/command_run.h"
#include "launch/engine.h"

/// An engine's commands, run. Each blocks until they have ended. Machines of untried peers hear of nothing
/// but their start: their names may be wrong.
namespace tw::launch {

/// The error has a line for each peer, host or command that failed, and for what lives after Action::stop;
/// others were done. at_least: of the limits of the commands.
Status perform(const Engine& engine, Action action, const Deployment& deployment,
               const std::vector<PeerJob>& peers, Duration at_least = {});

struct Started {
  std::vector<PeerJob> peers;
  std::vector<PeerJob> uncertain;  ///< their start was late or interrupted: nobody knows whether they start
  std::vector<PeerJob> in_vain;    ///< nothing of this start lives, for certain (Command::in_vain)
  std::string trouble;             ///< a line for each peer, host or command that failed; empty: nothing did
};

/// Called with the peers that start next, and the deployment that they get: without those whose machines are
/// not ready. An error keeps them from it.
using BeforeStart = std::function<Status(const Deployment& ready, const std::vector<PeerJob>& peers)>;

/// Action::prepare, then Action::start of the peers whose machines are ready.
Started start(const Engine& engine, const Deployment& deployment, const std::vector<PeerJob>& peers,
              const BeforeStart& before);

/// States of the peers of the deployment, by number; those that are untried are absent. What does not answer
/// in time is unknown.
Result<std::vector<PeerReport>> ask(const Engine& engine, const Deployment& deployment);

/// absent without a report.
PeerReport report_of(const std::vector<PeerReport>& reports, std::uint32_t number);

/// Without those that are unknown: a machine that cannot be asked has no logs to fetch either.
std::vector<PeerJob> known_peers(const std::vector<PeerJob>& peers, const std::vector<PeerReport>& reports);

/// It runs, waits for its machine, or may.
bool may_live(PeerState state);

}  // namespace tw::launch
