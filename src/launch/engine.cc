// SPDX-License-Identifier: Apache-2.0
#include "launch/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

namespace tw::launch {
namespace {

using namespace std::chrono_literals;

constexpr Duration kAnswerLimit = 30s;
constexpr Duration kWorkLimit = 2min;
constexpr Duration kStartLimit = 10min;

Duration limit_of(Action action, const Deployment& deployment) {
  switch (action) {
    case Action::status:
    case Action::hurry:
      return kAnswerLimit;
    case Action::collect:  // the next one goes on where this one ended
    case Action::remove:
      return kWorkLimit;
    case Action::logs:
      return kOutputLimit;
    case Action::stop:
    case Action::retire:
      return kWorkLimit + deployment.grace;
    case Action::start:
      return kStartLimit;
    case Action::prepare:
    case Action::check:
      break;
  }
  return {};
}

}  // namespace

std::vector<Command> with_limits(std::vector<Command> commands, Action action, const Deployment& deployment) {
  for (Command& command : commands) command.limit = limit_of(action, deployment);
  return commands;
}

std::vector<PeerReport> unknown_for(const Deployment& deployment, const std::string& why) {
  std::vector<PeerReport> reports;
  for (const PeerJob& peer : deployment.peers)
    reports.push_back({.number = peer.number, .state = PeerState::unknown, .detail = why});
  return reports;
}

std::string twins_text(const std::vector<std::string>& living) {
  if (living.size() < 2) return "";
  return fmt::format("; {} jobs live: {}", living.size(), fmt::join(living, ", "));
}

std::string_view to_string(PeerState state) {
  static constexpr std::array<std::string_view, 8> kNames = {"unknown", "absent", "waiting", "running",
                                                             "leaving", "left",   "done",    "failed"};
  static_assert(kNames.size() == static_cast<std::size_t>(PeerState::failed) + 1);
  return kNames.at(static_cast<std::size_t>(state));
}

PeerState state_after(int exit_code) {
  if (exit_code == 0) return PeerState::done;
  return exit_code == kGoesOn ? PeerState::left : PeerState::failed;
}

bool needs_person(const PeerReport& report) {
  return report.state == PeerState::failed && report.exit_code == kNeedsPerson;
}

}  // namespace tw::launch
