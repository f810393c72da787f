// SPDX-License-Identifier: Apache-2.0
#include "cli/run/keep_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/result.h"
#include "cli/plan/launch_plan.h"
#include "launch/fleet.h"

namespace tw::cli {

std::vector<launch::PeerReport> seen_by_the_rules(const launch::Engine& engine,
                                                  const launch::Deployment& deployment,
                                                  std::vector<launch::PeerReport> reports) {
  for (launch::PeerReport& report : reports) {
    const launch::PeerJob* const peer = find_peer(deployment, report.number);
    if (report.state == launch::PeerState::left && peer != nullptr && engine.restarts(*peer))
      report.state = launch::PeerState::failed;
  }
  return reports;
}

Result<std::vector<launch::PeerJob>> in_place_of(const UpArguments& given, const launch::PeerJob& gone,
                                                 const launch::RunState& state) {
  UpArguments arguments = given;
  arguments.plan = state.plan_file;
  TW_TRY(const auto request, read_request(arguments));
  auto peers = launch::place({.plan = request.plan.peers,
                              .before = state.deployment.peers,
                              .hosts = request.hosts,
                              .next_number = state.next_number,
                              .barred = gone.host,
                              .engines = request.engines});
  if (peers) peers = with_addresses(request, std::move(peers).value());
  if (!peers) return peers.error();
  auto added = launch::difference(state.deployment.peers, peers.value()).add;
  if (added.empty()) return Error{fmt::format("{} asks for no other anchor", state.plan_file)};
  return added;
}

std::string next_plan_file(const std::string& folder) {
  int number = 2;
  while (std::filesystem::exists(fmt::format("{}/PLAN-{}.yaml", folder, number))) ++number;
  return fmt::format("{}/PLAN-{}.yaml", folder, number);
}

}  // namespace tw::cli
