// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/deployment.h"

/// On which nodes a peer may run: by the labels and taints of GKE, EKS and AKS.
namespace tw::launch {

/// What a node's label has to be, or must not be.
struct Requirement {
  std::string label;
  std::string value;
  bool is = true;  ///< false: any other value, or none

  bool operator==(const Requirement&) const = default;
};

/// A taint with this key and value, NoSchedule, is no hindrance. An empty value: whatever it is.
struct Toleration {
  std::string key;
  std::string value;

  bool operator==(const Toleration&) const = default;
};

/// All that one machine has to meet. Nothing for machines of the user's own and for other providers, whose
/// labels are not known.
std::vector<Requirement> requirements_of(const Machine& machine);

/// For all the machines that may hold the peer.
std::vector<Toleration> tolerations_of(const PeerJob& peer);

}  // namespace tw::launch
