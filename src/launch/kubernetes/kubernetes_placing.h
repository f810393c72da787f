// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/deployment.h"

/// On which nodes a peer may run: by the labels and taints of GKE, EKS and AKS.
namespace tw::launch {

/// A required, or excluded, value of a node's label.
struct Requirement {
  std::string label;
  std::string value;
  bool is = true;  ///< false: any other value, or none

  bool operator==(const Requirement&) const = default;
};

/// A taint with this key and value, NoSchedule, is tolerated. An empty value: any.
struct Toleration {
  std::string key;
  std::string value;

  bool operator==(const Toleration&) const = default;
};

/// All requirements of one machine. Empty for the user's own machines and for other providers, because their
/// labels are not known.
std::vector<Requirement> requirements_of(const Machine& machine);

/// For all the machines that may hold the peer.
std::vector<Toleration> tolerations_of(const PeerJob& peer);

}  // namespace tw::launch
