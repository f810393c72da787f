// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "cli/run/run_place.h"
#include "launch/fleet.h"

namespace tw::cli {

std::string json_of(const launch::RunState& state, const std::vector<launch::PeerReport>& reports,
                    const plan::RunProgress& progress) {
  using Json = nlohmann::ordered_json;
  Json peers = Json::array();
  double usd_per_h = 0;
  for (const launch::PeerJob& peer : state.deployment.peers) {
    const launch::PeerReport report = launch::report_of(reports, peer.number);
    if (report.state == launch::PeerState::running) usd_per_h += peer.machine.usd_per_h;
    peers.push_back({{"peer", peer.number},
                     {"job", launch::job_name(state.deployment, peer)},
                     {"state", std::string(launch::to_string(report.state))},
                     {"exit_code", report.exit_code ? Json(*report.exit_code) : Json(nullptr)},
                     {"restarts", report.restarts},
                     {"where", report.where},
                     {"detail", report.detail},
                     {"anchor", peer.anchor},
                     {"site", market::to_string(peer.machine.site)},
                     {"gpu", peer.machine.gpu},
                     {"purchase", std::string(market::to_string(peer.machine.purchase))},
                     {"usd_per_h", peer.machine.usd_per_h}});
  }
  return Json{{"run", state.deployment.run},
              {"engine", state.engine},
              {"plan", state.plan_file},
              {"folder", state.deployment.folder},
              {"usd_per_h", usd_per_h},
              {"samples", progress.samples},
              {"samples_per_s", progress.samples_per_s},
              {"losses", progress.losses},
              {"peers", peers}}
             .dump(1) +
         "\n";
}

std::string json_of_runs(const std::vector<std::string>& runs) {
  return nlohmann::json{{"runs", runs}}.dump() + '\n';
}

}  // namespace tw::cli
