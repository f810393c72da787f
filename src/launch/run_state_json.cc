// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "launch/run_store.h"

namespace tw::launch {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

Json machine_json(const Machine& machine) {
  return {{"site", market::to_string(machine.site)},
          {"vm", machine.vm_type},
          {"gpu", machine.gpu},
          {"purchase", std::string(market::to_string(machine.purchase))},
          {"usd_per_h", machine.usd_per_h}};
}

Machine machine_in(const Json& json) {
  const auto site = market::parse_site(json.at("site").get<std::string>());
  const auto purchase = market::parse_purchase(json.at("purchase").get<std::string>());
  if (!site || !purchase) throw std::invalid_argument("site or purchase of a machine");
  return {site.value(), json.at("vm").get<std::string>(), json.at("gpu").get<std::string>(), *purchase,
          json.at("usd_per_h").get<double>()};
}

Json peer_json(const PeerJob& peer) {
  Json alternatives = Json::array();
  for (const Machine& machine : peer.alternatives) alternatives.push_back(machine_json(machine));
  return {{"number", peer.number},
          {"restart", peer.restart},
          {"anchor", peer.anchor},
          {"host", peer.host},
          {"home", peer.home},
          {"address", peer.address},
          {"port", peer.port},
          {"machine", machine_json(peer.machine)},
          {"alternatives", alternatives},
          {"untried", peer.untried},
          {"started_unix_s", peer.started_unix_s},
          {"starts", peer.starts}};
}

PeerJob peer_in(const Json& json) {
  PeerJob peer{.number = json.at("number").get<std::uint32_t>(),
               .restart = json.at("restart").get<std::uint32_t>(),
               .machine = machine_in(json.at("machine")),
               .anchor = json.at("anchor").get<bool>(),
               .host = json.at("host").get<std::string>(),
               .home = json.at("home").get<std::string>(),
               .address = json.at("address").get<std::string>(),
               .port = json.at("port").get<std::uint16_t>(),
               .untried = json.value("untried", false),
               .started_unix_s = json.value("started_unix_s", std::int64_t{0}),
               .starts = json.value("starts", 0U)};
  for (const Json& machine : json.at("alternatives")) peer.alternatives.push_back(machine_in(machine));
  return peer;
}

Json user_json(const UserProgram& user) {
  return {{"command", user.command}, {"files", user.files}, {"folders", user.folders},
          {"bytes", user.bytes},     {"setup", user.setup}, {"setup_key", user.setup_key},
          {"env", user.env}};
}

UserProgram user_in(const Json& json) {
  return {.command = json.at("command").get<std::vector<std::string>>(),
          .files = json.at("files").get<std::vector<std::string>>(),
          .folders = json.value("folders", std::vector<std::string>()),
          .bytes = json.at("bytes").get<std::uint64_t>(),
          .setup = json.at("setup").get<std::vector<std::string>>(),
          .setup_key = json.at("setup_key").get<std::string>(),
          .env = json.at("env").get<std::map<std::string, std::string>>()};
}

Json deployment_json(const Deployment& deployment) {
  Json peers = Json::array();
  for (const PeerJob& peer : deployment.peers) peers.push_back(peer_json(peer));
  return {{"run", deployment.run},
          {"run_file", deployment.run_file},
          {"program", deployment.program},
          {"archive", deployment.archive},
          {"program_digest", deployment.archive_digest},
          {"program_bytes", deployment.archive_bytes},
          {"user", user_json(deployment.user)},
          {"image", deployment.image},
          {"settings", deployment.settings},
          {"on", deployment.on},
          {"grace_s", to_seconds(deployment.grace)},
          {"founder", deployment.founder},
          {"peers", peers}};
}

StopState stop_in(const Json& json) {
  if (json.value("stopped", false)) return StopState::stopped;
  return json.value("stopping", false) ? StopState::stopping : StopState::none;
}

Deployment deployment_in(const Json& json) {
  Deployment deployment{.run = json.at("run").get<std::string>(),
                        .run_file = json.at("run_file").get<std::string>(),
                        .program = json.at("program").get<std::string>(),
                        .archive = json.value("archive", json.at("program").get<std::string>()),
                        .archive_digest = json.at("program_digest").get<std::string>(),
                        .archive_bytes = json.at("program_bytes").get<std::uint64_t>(),
                        .user = user_in(json.at("user")),
                        .image = json.at("image").get<std::string>(),
                        .settings = json.at("settings").get<std::vector<std::string>>(),
                        .on = json.at("on").get<std::map<std::string, std::string>>(),
                        .grace = from_seconds(json.at("grace_s").get<double>()),
                        .founder = json.value("founder", 0U)};
  for (const Json& peer : json.at("peers")) deployment.peers.push_back(peer_in(peer));
  return deployment;
}

}  // namespace

std::string to_json(const RunState& state) {
  return Json{{"tradewind_run", kVersion},
              {"engine", state.engine},
              {"plan_file", state.plan_file},
              {"job_file", state.job_file},
              {"next_number", state.next_number},
              {"stopped", state.stop == StopState::stopped},
              {"stopping", state.stop == StopState::stopping},
              {"deployment", deployment_json(state.deployment)}}
             .dump(1) +
         "\n";
}

Result<RunState> run_state_in(const std::string& file, const std::string& text) {
  const auto wrong = [&](const std::string& what) {
    return Error{
        fmt::format("{}: {}; expected the state of a run as tw up writes it. Its peers are not "
                    "touched; when none runs any more, remove the folder and start anew",
                    file, what)};
  };
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("tradewind_run")) return wrong("damaged, or not of tradewind");
  try {
    if (json.at("tradewind_run").get<int>() != kVersion)
      return wrong(fmt::format("of version {}", json.at("tradewind_run").dump()));
    return RunState{.engine = json.at("engine").get<std::string>(),
                    .plan_file = json.at("plan_file").get<std::string>(),
                    .job_file = json.at("job_file").get<std::string>(),
                    .next_number = json.at("next_number").get<std::uint32_t>(),
                    .stop = stop_in(json),
                    .deployment = deployment_in(json.at("deployment"))};
  } catch (const std::exception& e) {
    return wrong(e.what());
  }
}

}  // namespace tw::launch
