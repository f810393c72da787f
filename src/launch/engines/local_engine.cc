// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/result.h"
#include "launch/engines/engines.h"
#include "launch/engines/host_script.h"

namespace tw::launch {
namespace {

HostPlaces places_here(const Deployment& deployment) {
  return {shell_word(deployment.program), shell_word(deployment.folder),
          shell_word(deployment.folder + "/logs")};
}

/// Processes of this machine, which outlive the command that starts them.
class LocalEngine final : public Engine {
 public:
  bool restarts(const PeerJob& /*peer*/) const override { return false; }

  Status check(const Deployment& deployment) const override { return check_settings(deployment); }

  Status check_settings(const Deployment& deployment) const override {
    for (const auto& [key, value] : deployment.on)
      if (key != "address")
        return Error{
            fmt::format("--with {}={}: unknown setting of local; expected address=HOST", key, value)};
    return Unit{};
  }

  std::vector<File> files(const Deployment& deployment) const override { return shared_files(deployment); }

  std::vector<Command> commands(Action action, const Deployment& deployment,
                                const std::vector<PeerJob>& peers) const override {
    std::vector<Command> commands;
    const HostPlaces places = places_here(deployment);
    const auto add = [&](const PeerJob& peer, std::string script) {
      commands.push_back({.words = {"sh", "-s"},
                          .client = "local process",
                          .input = std::move(script),
                          .peer = peer.number});
    };
    if ((action == Action::prepare || action == Action::check) && !peers.empty()) {
      add(peers.front(), ready_script(deployment, peers.front(), places, "this machine"));
      commands.back().peer = 0;  // what fails here fails for all
      commands.back().says_why = true;
    }
    for (const PeerJob& peer : action == Action::status ? deployment.peers : peers) {
      if (action == Action::start) add(peer, start_script(deployment, peer, places));
      if (action == Action::stop) add(peer, stop_script(peer, places, deployment.grace));
      if (action == Action::status) add(peer, state_script(peer, places));
      if (action == Action::collect) add(peer, keep_output(peer, places));
      if (action == Action::logs)
        commands.push_back(
            {.words = {"cat", deployment.folder + "/" + short_name(peer) + "/log"}, .peer = peer.number});
    }
    return with_limits(std::move(commands), action, deployment);
  }

  Result<std::vector<PeerReport>> states(const Deployment& /*deployment*/,
                                         const std::vector<Output>& outputs) const override {
    std::vector<PeerReport> reports;
    for (const Output& output : outputs) {
      if (output.is_late) {
        reports.push_back(
            {.number = output.command.peer, .state = PeerState::unknown, .detail = output.errors});
        continue;
      }
      TW_TRY(auto report, state_in(output.text));
      reports.push_back(std::move(report));
    }
    return reports;
  }
};

}  // namespace

std::unique_ptr<Engine> local_engine() { return std::make_unique<LocalEngine>(); }

}  // namespace tw::launch
