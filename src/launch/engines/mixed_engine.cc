// SPDX-License-Identifier: Apache-2.0
#include "launch/engines/mixed_engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/result.h"
#include "base/text/fields.h"
#include "base/text/text.h"
#include "launch/engines/engines.h"

namespace tw::launch {
namespace {

/// Every exit code: a failure to ask one engine keeps nobody from asking the others.
std::vector<int> any_exit() {
  std::vector<int> codes(256);
  std::iota(codes.begin(), codes.end(), 0);
  return codes;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// "ssh" of "ssh.control"; empty: no engine is named.
std::string engine_in(const std::string& key) {
  const std::size_t dot = key.find('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

Error nothing_starts(const Machine& machine) {
  const std::string_view purchase = market::to_string(machine.purchase);
  return {
      fmt::format("--on: nothing starts the {0} machine at {1}: add --on {0}=ENGINE, or --on ENGINE for all "
                  "that are left",
                  purchase, market::to_string(machine.site))};
}

class MixedEngine final : public Engine {
 public:
  explicit MixedEngine(EngineChoice choice) : choice_(std::move(choice)) {
    for (const std::string& name : choice_.engines()) parts_.push_back({name, one_engine(name).value()});
  }

  bool restarts(const PeerJob& peer) const override {
    const Part* part = part_with(peer);
    return part != nullptr && part->engine->restarts(peer);
  }

  Status check_settings(const Deployment& deployment) const override {
    const std::vector<std::string> names = choice_.engines();
    for (const auto& [key, value] : deployment.on)
      if (std::ranges::find(names, engine_in(key)) == names.end())
        return Error{
            fmt::format("--with {}={}: which engine is it for? Expected ENGINE.KEY=VALUE, with one of {}{}",
                        key, value, fmt::join(names, ", "), did_you_mean(engine_in(key), names))};
    for (const Part& part : parts_)
      TW_TRY(part.engine->check_settings(part_of(deployment, choice_, part.name)));
    return Unit{};
  }

  Status check(const Deployment& deployment) const override {
    TW_TRY(check_settings(deployment));
    for (const PeerJob& peer : deployment.peers)
      if (part_with(peer) == nullptr) return nothing_starts(peer.machine);
    for (const Part& part : parts_) {
      const Deployment own = part_of(deployment, choice_, part.name);
      if (own.peers.empty()) continue;
      TW_TRY(part.engine->check(own));
      if (!own.elsewhere.empty() && bootstrap_of(deployment).empty())
        return Error{
            fmt::format("--on {}: no peer has an address that those of other engines can dial; give "
                        "machines that stay to ssh or local, such as --on owned=ssh",
                        choice_.text())};
    }
    return Unit{};
  }

  std::vector<File> files(const Deployment& deployment) const override {
    std::vector<File> files;
    for (const Part& part : parts_) {
      const Deployment own = part_of(deployment, choice_, part.name);
      if (own.peers.empty()) continue;
      for (File& file : part.engine->files(own))
        if (std::ranges::find(files, file) == files.end()) files.push_back(std::move(file));
    }
    return files;
  }

  std::vector<Command> commands(Action action, const Deployment& deployment,
                                const std::vector<PeerJob>& peers) const override {
    std::vector<std::vector<Command>> by_engine;
    for (const Part& part : parts_) by_engine.push_back(commands_of(part, action, deployment, peers));
    // A failure for the run skips all that follows, one for a peer does not: hosts come before clusters.
    std::ranges::stable_partition(by_engine, [](const std::vector<Command>& own) {
      return std::ranges::none_of(own, [](const Command& command) { return command.peer == 0; });
    });
    std::vector<Command> all;
    for (std::vector<Command>& own : by_engine) std::ranges::move(own, std::back_inserter(all));
    if (action == Action::status)
      for (Command& command : all) command.fine = any_exit();
    return all;
  }

  Remains remains(Action action, const Deployment& deployment, const std::vector<PeerJob>& peers,
                  const std::vector<Output>& outputs) const override {
    Remains all;
    for (const Part& part : parts_) {
      const std::vector<PeerJob> own = peers_of(part, peers);
      if (own.empty()) continue;
      const std::vector<Command> asked = commands_of(part, action, deployment, peers);
      std::vector<Output> mine;
      std::ranges::copy_if(outputs, std::back_inserter(mine), [&](const Output& output) {
        return std::ranges::find(asked, output.command) != asked.end();
      });
      Remains some = part.engine->remains(action, part_of(deployment, choice_, part.name), own, mine);
      std::ranges::move(some.next, std::back_inserter(all.next));
      if (!some.living.empty()) all.living += (all.living.empty() ? "" : "\n") + some.living;
    }
    return all;
  }

  /// By engine; the peer that begins the run is in the first group.
  std::vector<std::vector<PeerJob>> starts(const Deployment& deployment,
                                           const std::vector<PeerJob>& peers) const override {
    std::vector<std::vector<PeerJob>> groups;
    for (const Part& part : parts_)
      if (std::vector<PeerJob> own = peers_of(part, peers); !own.empty()) groups.push_back(std::move(own));
    const Part* const begins = part_with(first_of(deployment));
    std::ranges::stable_partition(groups,
                                  [&](const auto& group) { return part_with(group.front()) == begins; });
    return groups;
  }

  Result<std::vector<PeerReport>> states(const Deployment& deployment,
                                         const std::vector<Output>& outputs) const override {
    std::vector<PeerReport> reports;
    for (const Part& part : parts_) {
      const Deployment own = part_of(deployment, choice_, part.name);
      if (own.peers.empty()) continue;
      auto found = states_of(part, deployment, own, outputs);
      if (!found) found = unknown_for(own, first_line(found.error().message));
      std::ranges::move(std::move(found).value(), std::back_inserter(reports));
    }
    std::ranges::sort(reports, {}, &PeerReport::number);
    return reports;
  }

 private:
  struct Part {
    std::string name;
    std::unique_ptr<Engine> engine;
  };

  const Part* part_with(const PeerJob& peer) const {
    const auto found = std::ranges::find(parts_, choice_.engine_of(peer), &Part::name);
    return found == parts_.end() ? nullptr : &*found;
  }

  std::vector<PeerJob> peers_of(const Part& part, const std::vector<PeerJob>& peers) const {
    std::vector<PeerJob> own;
    std::ranges::copy_if(peers, std::back_inserter(own),
                         [&](const PeerJob& peer) { return part_with(peer) == &part; });
    return own;
  }

  std::vector<Command> commands_of(const Part& part, Action action, const Deployment& deployment,
                                   const std::vector<PeerJob>& peers) const {
    const std::vector<PeerJob> own = peers_of(part, peers);
    if (own.empty()) return {};
    return part.engine->commands(action, part_of(deployment, choice_, part.name), own);
  }

  /// The outputs of this engine's commands, and what it makes of them.
  Result<std::vector<PeerReport>> states_of(const Part& part, const Deployment& whole, const Deployment& own,
                                            const std::vector<Output>& outputs) const {
    std::vector<Output> mine;
    for (const Command& asked : commands_of(part, Action::status, whole, own.peers))
      for (const Output& output : outputs) {
        Command answered = output.command;
        answered.fine = asked.fine;
        if (!(answered == asked)) continue;
        if (!output.is_late && std::ranges::find(asked.fine, output.exit_code) == asked.fine.end())
          return Error{
              fmt::format("{}: exit code {}: {}", part.name, output.exit_code, last_line(output.errors))};
        mine.push_back(output);
        break;
      }
    return part.engine->states(own, mine);
  }

  EngineChoice choice_;
  std::vector<Part> parts_;
};

}  // namespace

Deployment part_of(const Deployment& whole, const EngineChoice& choice, const std::string& engine) {
  Deployment part = whole;
  part.peers.clear();
  for (const PeerJob& peer : whole.peers)
    (choice.engine_of(peer) == engine ? part.peers : part.elsewhere).push_back(peer);
  part.on.clear();
  for (const auto& [key, value] : whole.on)
    if (engine_in(key) == engine) part.on.emplace(key.substr(engine.size() + 1), value);
  return part;
}

std::unique_ptr<Engine> mixed_engine(EngineChoice choice) {
  return std::make_unique<MixedEngine>(std::move(choice));
}

}  // namespace tw::launch
