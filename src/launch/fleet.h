// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"
#include "launch/command_run.h"
#include "launch/engine.h"

/// An engine's commands, run. Each blocks until they have ended.
namespace tw::launch {

/// The error has a line for each peer, host or command that failed; others were done.
Status perform(const Engine& engine, Action action, const Deployment& deployment,
               const std::vector<PeerJob>& peers);

struct Started {
  std::vector<PeerJob> peers;
  std::string trouble;  ///< a line for each peer, host or command that failed; empty: nothing did
};

/// Action::prepare, then Action::start of the peers whose machines are ready.
Started start(const Engine& engine, const Deployment& deployment, const std::vector<PeerJob>& peers);

/// States of the peers of the deployment, by number.
Result<std::vector<PeerReport>> ask(const Engine& engine, const Deployment& deployment);

/// absent without a report.
PeerReport report_of(const std::vector<PeerReport>& reports, std::uint32_t number);

/// It runs, waits for its machine, or may.
bool may_live(PeerState state);

}  // namespace tw::launch
