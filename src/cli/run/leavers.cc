// SPDX-License-Identifier: Apache-2.0
#include "cli/run/leavers.h"

#include <initializer_list>

#include "cli/commands.h"
#include "launch/fleet.h"

namespace tw::cli {
namespace {

/// Notices of clouds are shorter.
constexpr Duration kLongestLeave = std::chrono::minutes(15);

void do_all(const launch::Engine& engine, const launch::Deployment& deployment, const launch::PeerJob& peer,
            std::initializer_list<launch::Action> actions) {
  for (const launch::Action action : actions)
    if (const Status done = launch::perform(engine, action, deployment, {peer}); !done)
      warn(done.error().message);
}

}  // namespace

void Leavers::add(const launch::Engine& engine, const launch::Deployment& deployment,
                  const launch::PeerJob& peer, Instant now) {
  leavers_.push_back({.peer = peer, .stopped = now + kLongestLeave});
  do_all(engine, deployment, peer, {launch::Action::collect, launch::Action::retire});
}

void Leavers::look(const launch::Engine& engine, const launch::Deployment& deployment, Instant now) {
  if (leavers_.empty()) return;
  launch::Deployment theirs = deployment;
  theirs.peers.clear();
  for (const Leaver& leaver : leavers_) theirs.peers.push_back(leaver.peer);
  const auto reports = launch::ask(engine, theirs);
  if (!reports) return warn(reports.error().message);
  std::erase_if(leavers_, [&](const Leaver& leaver) {
    const bool lives = launch::may_live(launch::report_of(reports.value(), leaver.peer.number).state);
    if (lives && now < leaver.stopped) return false;
    using launch::Action;
    do_all(engine, deployment, leaver.peer, {Action::collect, Action::stop, Action::remove});
    return true;
  });
}

}  // namespace tw::cli
