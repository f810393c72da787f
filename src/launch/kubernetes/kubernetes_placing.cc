// SPDX-License-Identifier: Apache-2.0
#include "launch/kubernetes/kubernetes_placing.h"

#include <algorithm>

#include "launch/engines/cloud_names.h"
#include "launch/kubernetes/kubernetes.h"

namespace tw::launch {
namespace {

/// How a provider marks its spot nodes. Sources, 2026-11:
/// cloud.google.com/kubernetes-engine/docs/concepts/spot-vms,
/// docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html,
/// learn.microsoft.com/azure/aks/spot-node-pool.
struct Cloud {
  const char* provider;
  const char* label;
  const char* value;
  bool taints;  ///< its spot nodes refuse pods without a toleration, or are recommended to
};

constexpr Cloud kClouds[] = {
    {"gcp", "cloud.google.com/gke-spot", "true", true},
    {"aws", "eks.amazonaws.com/capacityType", "SPOT", false},
    {"azure", "kubernetes.azure.com/scalesetpriority", "spot", true},
};

const Cloud* cloud_of(const Machine& machine) {
  const auto found = std::ranges::find(kClouds, machine.site.provider, &Cloud::provider);
  return found == std::end(kClouds) || machine.purchase == market::Purchase::owned ? nullptr : found;
}

/// The value of cloud.google.com/gke-accelerator (cloud.google.com/kubernetes-engine/docs/concepts/gpus);
/// empty for a GPU that GKE has not.
std::string gke_name(const std::string& gpu) {
  static constexpr std::pair<const char*, const char*> kNames[] = {
      {"T4", "nvidia-tesla-t4"},     {"V100", "nvidia-tesla-v100"}, {"P100", "nvidia-tesla-p100"},
      {"P4", "nvidia-tesla-p4"},     {"A100", "nvidia-tesla-a100"}, {"A100-80GB", "nvidia-a100-80gb"},
      {"L4", "nvidia-l4"},           {"H100", "nvidia-h100-80gb"},  {"H100-MEGA", "nvidia-h100-mega-80gb"},
      {"H200", "nvidia-h200-141gb"}, {"B200", "nvidia-b200"},
  };
  for (const auto& [name, label] : kNames)
    if (gpu == name) return label;
  return "";
}

/// AKS calls the first zone of eastus eastus-1.
std::string zone_label(const Machine& machine) {
  const std::string zone = zone_of(machine);
  const bool bare = machine.site.provider == "azure" && zone.size() == 1;
  return bare ? machine.site.region + "-" + zone : zone;
}

}  // namespace

std::vector<Requirement> requirements_of(const Machine& machine) {
  const Cloud* cloud = cloud_of(machine);
  if (cloud == nullptr) return {};
  std::vector<Requirement> all = {{cloud->label, cloud->value, is_spot(machine)}};
  const auto need = [&](const char* label, const std::string& value) {
    if (!value.empty()) all.push_back({label, value});
  };
  need("topology.kubernetes.io/region", region_of(machine));
  need("topology.kubernetes.io/zone", zone_label(machine));
  need("topology.k8s.aws/zone-id", aws_zone_id_of(machine));
  need("node.kubernetes.io/instance-type", type_of(machine));
  if (machine.site.provider == "gcp")
    need("cloud.google.com/gke-accelerator", gke_name(gpus_of(machine).name));
  return all;
}

std::vector<Toleration> tolerations_of(const PeerJob& peer) {
  std::vector<Toleration> all;
  const auto add = [&](Toleration toleration) {
    if (std::ranges::find(all, toleration) == all.end()) all.push_back(std::move(toleration));
  };
  for (const Machine& machine : pod_choices(peer)) {
    const Cloud* cloud = cloud_of(machine);
    if (cloud != nullptr && cloud->taints && is_spot(machine)) add({cloud->label, cloud->value});
    if (gpus_of(machine).count > 0) add({"nvidia.com/gpu", ""});
  }
  return all;
}

}  // namespace tw::launch
