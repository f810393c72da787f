// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/engine.h"

/// `tw up --on k8s`: a Job of one pod for each peer, so that only the lost one comes back and a plan can grow
/// and shrink; a Secret, a ConfigMap and a headless Service for the run. Fields of Kubernetes 1.20 alone,
/// newer ones where the setting k8s-version says that the cluster has them. docs/launch.md says how it
/// behaves.
namespace tw::launch {

/// A folder of data in the container: "claim:NAME:/data" or "host:/srv/data:/data".
struct PodMount {
  enum class Kind { claim, host } kind = Kind::claim;
  std::string source;
  std::string path;

  bool operator==(const PodMount&) const = default;
};

/// Settings of Deployment::on for this engine.
struct PodSettings {
  std::string context;           ///< of kubectl; empty: the current one
  std::string name_space;        ///< "namespace"; empty: the context's
  int minor = 20;                ///< "k8s-version": "1.31"
  std::string cpu, memory;       ///< of each peer, as Kubernetes writes them: "4", "16Gi"
  std::string pull_policy;       ///< "pull": Always, IfNotPresent, Never
  std::string pull_secret;       ///< "pull-secret": name of a Secret of the registry
  std::vector<PodMount> mounts;  ///< "mount": several with commas between them
  std::optional<PodMount> logs;  ///< "logs": claim:NAME or host:/FOLDER, where event logs outlive their pods
};

/// The error names the setting that is unknown or has a wrong value.
Result<PodSettings> pod_settings(const Deployment& deployment);

/// From SIGTERM to SIGKILL: Deployment::grace, or what the provider leaves its spot machines.
Duration pod_grace(const Deployment& deployment, const PeerJob& peer);

/// A List of ConfigMap and Service, as JSON.
std::string run_manifest(const Deployment& deployment);

/// The Secret with the tokens: on the stdin of kubectl alone.
std::string secret_manifest(const Deployment& deployment);

/// The ConfigMap with the files of the user's program; `f0` is the first of them.
std::string program_map_name(const Deployment& deployment);

/// The Job of a peer, as JSON. settings: of the deployment.
std::string job_manifest(const Deployment& deployment, const PeerJob& peer, const PodSettings& settings);

/// text: what `kubectl get jobs,pods -o json` printed.
Result<std::vector<PeerReport>> read_pods(const Deployment& deployment, std::string_view text);

/// The machines that may hold the peer: its own, and alternatives with as many GPUs, since a pod asks for one
/// number of them.
std::vector<Machine> pod_choices(const PeerJob& peer);

/// The labels of everything of the run, as a selector of kubectl.
std::string run_selector(const Deployment& deployment);

/// Where the container has its event logs.
inline constexpr std::string_view kPodLogs = "/var/lib/tradewind/logs";

inline constexpr std::string_view kInstanceLabel = "app.kubernetes.io/instance";
inline constexpr std::string_view kPeerLabel = "tradewind/peer";

}  // namespace tw::launch
