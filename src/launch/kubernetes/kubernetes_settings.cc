// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/result.h"
#include "base/text/number.h"
#include "base/text/split.h"
#include "launch/engines/cloud_names.h"
#include "launch/kubernetes/kubernetes.h"

namespace tw::launch {
namespace {

constexpr int kOldestMinor = 20;
/// GKE's kubelet leaves pods of a spot machine 15 of the 30 s: the others are for the system's own
/// (cloud.google.com/kubernetes-engine/docs/concepts/spot-vms).
constexpr Duration kGkeSpotGrace = std::chrono::seconds(15);

const std::vector<std::string> kPodSettings = {"context",     "namespace", "k8s-version", "cpu", "memory",
                                               "pull-secret", "pull",      "mount",       "logs"};

Error wrong_pod_setting(const std::string& key, const std::string& value, const std::string& expected) {
  return {fmt::format("k8s: {}={}: expected {}", key, value, expected)};
}

Result<int> minor_of(const std::string& text) {
  const auto minor = text.starts_with("1.") ? parse_number<int>(text.substr(2)) : std::nullopt;
  if (!minor || *minor < kOldestMinor)
    return wrong_pod_setting("k8s-version", text, fmt::format("1.{} or newer, such as 1.31", kOldestMinor));
  return *minor;
}

Result<std::vector<PodMount>> mounts_of(const std::string& text) {
  std::vector<PodMount> mounts;
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> words = split(part, ':');
    const bool known = words.size() == 3 && (words[0] == "claim" || words[0] == "host");
    if (!known || words[1].empty() || !words[2].starts_with('/'))
      return wrong_pod_setting("mount", part, "claim:NAME:/PATH or host:/FOLDER:/PATH");
    mounts.push_back(
        {words[0] == "claim" ? PodMount::Kind::claim : PodMount::Kind::host, words[1], words[2]});
  }
  return mounts;
}

}  // namespace

Result<PodSettings> pod_settings(const Deployment& deployment) {
  PodSettings settings;
  for (const auto& [key, value] : deployment.on) {
    if (std::ranges::find(kPodSettings, key) == kPodSettings.end())
      return Error{fmt::format("k8s: {}={}: unknown setting; expected one of {}", key, value,
                               fmt::join(kPodSettings, ", "))};
    if (value.empty()) return wrong_pod_setting(key, value, "a value");
  }
  const auto text = [&](const char* key) {
    const auto found = deployment.on.find(key);
    return found == deployment.on.end() ? std::string() : found->second;
  };
  settings.context = text("context");
  settings.name_space = text("namespace");
  settings.cpu = text("cpu");
  settings.memory = text("memory");
  settings.pull_secret = text("pull-secret");
  settings.pull_policy = text("pull");
  if (const std::string& pull = settings.pull_policy;
      !pull.empty() && pull != "Always" && pull != "IfNotPresent" && pull != "Never")
    return wrong_pod_setting("pull", pull, "Always, IfNotPresent or Never");
  if (const std::string version = text("k8s-version"); !version.empty()) {
    TW_TRY(const auto minor, minor_of(version));
    settings.minor = minor;
  }
  if (const std::string mount = text("mount"); !mount.empty()) {
    TW_TRY(auto mounts, mounts_of(mount));
    settings.mounts = std::move(mounts);
  }
  if (const std::string logs = text("logs"); !logs.empty()) {
    const auto mount = mounts_of(logs + ":" + std::string(kPodLogs));
    if (!mount || mount.value().size() != 1)
      return wrong_pod_setting("logs", logs, "claim:NAME or host:/FOLDER");
    settings.logs = mount.value().front();
  }
  return settings;
}

std::vector<Machine> pod_choices(const PeerJob& peer) {
  std::vector<Machine> machines = choices_of(peer);
  const int gpus = gpus_of(peer.machine).count;
  const std::string& provider = peer.machine.site.provider;
  std::erase_if(machines, [&](const Machine& machine) {
    return gpus_of(machine).count != gpus || machine.site.provider != provider;
  });
  return machines;
}

Duration pod_grace(const Deployment& deployment, const PeerJob& peer) {
  const std::vector<Machine> choices = pod_choices(peer);
  const bool gke_spot = std::ranges::any_of(
      choices, [](const Machine& machine) { return machine.site.provider == "gcp" && is_spot(machine); });
  return gke_spot ? std::min(deployment.grace, kGkeSpotGrace) : deployment.grace;
}

std::string program_map_name(const Deployment& deployment) { return deployment.run + "-program"; }

std::string run_selector(const Deployment& deployment) {
  return fmt::format("{}={}", kInstanceLabel, deployment.run);
}

}  // namespace tw::launch
