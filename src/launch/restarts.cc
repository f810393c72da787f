// SPDX-License-Identifier: Apache-2.0
#include "launch/restarts.h"

#include <algorithm>

#include "launch/fleet.h"

namespace tw::launch {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstWait = 5s;
constexpr Duration kLongestWait = 10min;
constexpr Duration kRanWell = 5min;  ///< after this time a failure counts as a new one

bool has_ended(PeerState state) {
  return state == PeerState::absent || state == PeerState::left || state == PeerState::failed;
}

}  // namespace

void Restarts::plan_return(Instant now, const PeerReport& report, History& history) const {
  if (now - history.started >= kRanWell) history.wait = Duration{};
  const bool soon = report.state != PeerState::failed;
  history.due = now + (soon && history.wait == Duration{} ? Duration{} : std::max(history.wait, kFirstWait));
  history.wait = std::min<Duration>(kLongestWait, std::max<Duration>(2 * history.wait, kFirstWait));
}

std::vector<std::uint32_t> Restarts::step(Instant now, const std::vector<PeerReport>& reports) {
  std::vector<std::uint32_t> due;
  for (const PeerReport& report : reports) {
    History& history = peers_.try_emplace(report.number, History{.started = now - kRanWell}).first->second;
    if (!has_ended(report.state) || needs_person(report)) {
      history.due = kNever;
      continue;
    }
    if (history.due == kNever) plan_return(now, report, history);
    if (now < history.due) continue;
    history.due = kNever;
    history.started = now;
    due.push_back(report.number);
  }
  return due;
}

RunEnd end_of(const std::vector<PeerReport>& reports) {
  const auto any = [&](const auto& is) { return std::ranges::any_of(reports, is); };
  const bool is_done = any([](const PeerReport& one) { return one.state == PeerState::done; });
  const bool needs = any(needs_person);
  const auto goes_on = [&](const PeerReport& one) {
    return may_live(one.state) || (!is_done && !needs_person(one));  // once a peer is done, none comes back
  };
  if (any(goes_on) || !(is_done || needs)) return RunEnd::none;
  return needs ? RunEnd::needs_person : RunEnd::complete;
}

std::vector<PeerJob> coming_peers(const std::vector<PeerJob>& peers, const std::vector<PeerReport>& reports) {
  std::vector<PeerJob> coming = peers;
  std::erase_if(coming, [&](const PeerJob& peer) { return needs_person(report_of(reports, peer.number)); });
  return coming;
}

std::uint32_t next_founder(const Deployment& deployment, const std::vector<PeerJob>& coming) {
  const std::uint32_t founder = deployment.founder;
  if (has_peer(coming, founder)) return founder;
  std::vector<PeerJob> heirs = coming;
  std::erase_if(heirs, [](const PeerJob& peer) { return peer.untried; });
  return heirs.empty() ? founder : first_of(heirs).number;
}

std::uint32_t last_anchor_that_goes(const Deployment& deployment, const std::vector<PeerReport>& reports) {
  std::uint32_t going = 0;
  for (const PeerJob& peer : deployment.peers) {
    if (!peer.anchor) continue;
    const PeerState state = report_of(reports, peer.number).state;
    if (state == PeerState::leaving) going = peer.number;
    if (state == PeerState::running || state == PeerState::waiting) return 0;
  }
  return going;
}

}  // namespace tw::launch
