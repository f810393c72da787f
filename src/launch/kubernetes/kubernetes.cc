// SPDX-License-Identifier: Apache-2.0
#include "launch/kubernetes/kubernetes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/result.h"
#include "base/text/text.h"
#include "launch/engines/cloud_names.h"
#include "launch/engines/engines.h"
#include "launch/kubernetes/kubernetes_script.h"

namespace tw::launch {
namespace {

/// The most that a ConfigMap or a Secret holds (kubernetes.io/docs/concepts/configuration/configmap).
constexpr std::size_t kMostConfigBytes = 1 << 20;
/// Below it, hardly anything is out before SIGKILL.
constexpr Duration kLeastPodGrace = std::chrono::seconds(5);

/// Checked before anything else is asked of the engine.
PodSettings checked_settings(const Deployment& deployment) {
  auto settings = pod_settings(deployment);
  TW_CHECK(settings.ok());
  return std::move(settings).value();
}

/// Server-side: kubectl keeps no copy of the Secret in an annotation.
std::vector<std::string> kubectl_apply(const PodSettings& settings, const std::string& file) {
  return kubectl_words(settings, {"apply", kRequestTimeout, "--server-side", "--force-conflicts",
                                  "--field-manager=tradewind", "-f", file});
}

std::string k8s_base_path() { return "k8s/run.json"; }

std::string k8s_job_path(const Deployment& deployment, const PeerJob& peer) {
  return fmt::format("k8s/{}.json", job_name(deployment, peer));
}

std::string k8s_file(const Deployment& deployment, const std::string& path) {
  return deployment.folder + "/" + path;
}

class Kubernetes final : public Engine {
 public:
  bool restarts(const PeerJob& /*peer*/) const override { return true; }

  Status check_settings(const Deployment& deployment) const override {
    TW_TRY(pod_settings(deployment));
    return Unit{};
  }

  Status check(const Deployment& deployment) const override;
  std::vector<File> files(const Deployment& deployment) const override;
  std::vector<Command> commands(Action action, const Deployment& deployment,
                                const std::vector<PeerJob>& peers) const override;
  Result<std::vector<PeerReport>> states(const Deployment& deployment,
                                         const std::vector<Output>& outputs) const override;
};

/// A cluster is one provider's: its pods reach each other by the names of its own DNS.
Status check_one_provider(const Deployment& deployment) {
  std::set<std::string> providers;
  for (const PeerJob& peer : deployment.peers)
    if (peer.machine.purchase != market::Purchase::owned && !peer.machine.site.provider.empty())
      providers.insert(peer.machine.site.provider);
  if (providers.size() <= 1) return Unit{};
  return Error{fmt::format(
      "k8s: machines of {} are planned, and a cluster has those of one provider; give the others to another "
      "engine, such as --on {}=k8s --on skypilot",
      fmt::join(providers, " and "), *providers.begin())};
}

Status Kubernetes::check(const Deployment& deployment) const {
  TW_TRY(check_settings(deployment));
  if (deployment.image.empty())
    return Error{
        "k8s: no image; expected --image NAME, of a registry that the cluster reaches (docs/launch.md says "
        "how to "
        "build one)"};
  if (deployment.run_file.size() > kMostConfigBytes)
    return Error{fmt::format("k8s: the run file has {} bytes; expected at most {}, what a ConfigMap holds",
                             deployment.run_file.size(), kMostConfigBytes)};
  if (deployment.user.bytes > kMostConfigBytes)
    return Error{fmt::format(
        "k8s: the files of the program have {} bytes; expected at most {}, what a ConfigMap holds: build an "
        "image with them (docs/launch.md), and leave out program.files",
        deployment.user.bytes, kMostConfigBytes)};
  if (deployment.anew && find_peer(deployment, first_of(deployment).number) != nullptr)
    return Error{
        "k8s: --anew: a Job would start its next pod with it, too, which would give up what is done; leave "
        "it out: pods begin from round 1 where they find no checkpoint, so remove those, or give another "
        "checkpoint.folder"};
  if (deployment.grace < kLeastPodGrace)
    return Error{fmt::format("k8s: a grace of {:.0f} s; expected {:.0f} s or more",
                             to_seconds(deployment.grace), to_seconds(kLeastPodGrace))};
  return check_one_provider(deployment);
}

std::vector<File> Kubernetes::files(const Deployment& deployment) const {
  std::vector<File> files = {{k8s_base_path(), run_manifest(deployment)}};
  const PodSettings settings = checked_settings(deployment);
  for (const PeerJob& peer : deployment.peers)
    files.push_back({k8s_job_path(deployment, peer), job_manifest(deployment, peer, settings)});
  return files;
}

/// kubectl reads the files itself: it tells texts from others.
Command give_program(const Deployment& deployment, const PodSettings& settings) {
  std::vector<std::string> words = {"create",           "configmap", program_map_name(deployment),
                                    "--dry-run=client", "-o",        "json"};
  for (std::size_t i = 0; i < deployment.user.files.size(); ++i)
    words.push_back(
        fmt::format("--from-file=f{}={}/program/{}", i, deployment.folder, deployment.user.files[i]));
  const std::vector<std::string> label = {
      "label", "--local", "-f", "-", "-o", "json", run_selector(deployment)};
  return {.words = {"sh", "-s"},
          .client = "kubectl",
          .input = fmt::format("{} | {} | {}\n", shell_line(kubectl_words(settings, words)),
                               shell_line(kubectl_words(settings, label)),
                               shell_line(kubectl_apply(settings, "-")))};
}

/// A peer that ended has a Job yet, which would not start again.
std::vector<Command> prepare_pods(const Deployment& deployment, const std::vector<PeerJob>& peers,
                                  const PodSettings& settings) {
  std::vector<Command> commands = {
      {.words = kubectl_apply(settings, "-"), .input = secret_manifest(deployment), .input_is_secret = true},
      {.words = kubectl_apply(settings, k8s_file(deployment, k8s_base_path()))}};
  if (!deployment.user.files.empty()) commands.push_back(give_program(deployment, settings));
  for (const PeerJob& peer : peers)
    commands.push_back(
        {.words = kubectl_words(settings, {"delete", "jobs", "--selector", peer_selector(deployment, peer),
                                           "--ignore-not-found"}),
         .peer = peer.number});
  return commands;
}

/// The Secret and the rest of the run go with its last peers.
std::vector<Command> remove_run(const Deployment& deployment, const std::vector<PeerJob>& peers,
                                const PodSettings& settings) {
  for (const PeerJob& peer : deployment.peers)
    if (!has_peer(peers, peer.number)) return {};
  return {{.words = kubectl_words(settings, {"delete", "jobs,services,configmaps,secrets", "--selector",
                                             run_selector(deployment), "--ignore-not-found"})}};
}

std::vector<Command> pod_commands(Action action, const Deployment& deployment,
                                  const std::vector<PeerJob>& peers) {
  const PodSettings settings = checked_settings(deployment);
  const auto each = [&](const auto& command_of) {
    std::vector<Command> commands;
    for (const PeerJob& peer : peers) {
      commands.push_back(command_of(peer));
      commands.back().peer = peer.number;
    }
    return commands;
  };
  const auto script = [](std::string text) {
    return Command{.words = {"sh", "-s"}, .client = "kubectl", .input = std::move(text)};
  };
  const auto selected = [&](std::vector<std::string> words, const PeerJob& peer) {
    words.insert(words.end(), {"--selector", peer_selector(deployment, peer)});
    return Command{.words = kubectl_words(settings, words)};
  };
  switch (action) {
    case Action::prepare:
      return prepare_pods(deployment, peers, settings);
    case Action::check:
      return {};
    case Action::start:
      return each([&](const PeerJob& peer) {
        return Command{.words =
                           kubectl_apply(settings, k8s_file(deployment, k8s_job_path(deployment, peer)))};
      });
    case Action::stop:
    case Action::retire:  // a pod that is told to go already is told nothing more; its Job makes no other one
      return each([&](const PeerJob& peer) { return script(stop_pods_script(deployment, peer, settings)); });
    case Action::status:
      return {{.words = kubectl_words(settings, {"get", "jobs,pods", kRequestTimeout, "--selector",
                                                 run_selector(deployment), "-o", "json"})}};
    case Action::collect:
      return each(
          [&](const PeerJob& peer) { return script(collect_pods_script(deployment, peer, settings)); });
    case Action::hurry:
      // The Job makes the next pod at once when the ended one is deleted, instead of after its back-off.
      return each([&](const PeerJob& peer) {
        return selected({"delete", "pods", "--field-selector", "status.phase=Failed", "--ignore-not-found"},
                        peer);
      });
    case Action::logs:
      return each([&](const PeerJob& peer) { return selected({"logs", "--tail", "-1"}, peer); });
    case Action::remove:
      return remove_run(deployment, peers, settings);
  }
  return {};
}

std::vector<Command> Kubernetes::commands(Action action, const Deployment& deployment,
                                          const std::vector<PeerJob>& peers) const {
  // No setup line of the user's runs before the pods do.
  return with_limits(pod_commands(action, deployment, peers),
                     action == Action::prepare ? Action::start : action, deployment);
}

Result<std::vector<PeerReport>> Kubernetes::states(const Deployment& deployment,
                                                   const std::vector<Output>& outputs) const {
  TW_CHECK(outputs.size() == 1);
  const Output& output = outputs.front();
  if (output.is_late) return unknown_for(deployment, output.errors);
  if (output.exit_code != 0)
    return Error{fmt::format("k8s: {} ended with {}: {}", shell_line(output.command.words), output.exit_code,
                             last_line(output.errors))};
  return read_pods(deployment, output.text);
}

}  // namespace

std::unique_ptr<Engine> kubernetes_engine() { return std::make_unique<Kubernetes>(); }

}  // namespace tw::launch
