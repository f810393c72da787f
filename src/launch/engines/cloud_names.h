// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "launch/deployment.h"

/// What a plan's machines are called where engines ask clouds for them.
namespace tw::launch {

/// "4xT4": four T4. No GPU, or "cpu", as plans name machines without one: an empty name, 0.
struct Gpus {
  std::string name;
  int count = 0;

  bool operator==(const Gpus&) const = default;
};

Gpus gpus_of(const Machine& machine);

/// The provider's own name of the VM type: "n1-standard-8" of "n1-standard-8+T4". Empty where the plan has
/// none that a cloud would take ("n1 with 1 K80", from a publication).
std::string type_of(const Machine& machine);

/// The provider's own name of the region; empty for areas such as us-west, which publications name.
std::string region_of(const Machine& machine);

/// The provider's own name of the zone; empty where there is none, or where it is an id of AWS (use1-az1),
/// which each account maps to another name.
std::string zone_of(const Machine& machine);

/// use1-az1; empty where the zone is no such id.
std::string aws_zone_id_of(const Machine& machine);

bool is_spot(const Machine& machine);

/// All machines that may hold the peer: its own, then the alternatives.
std::vector<Machine> choices_of(const PeerJob& peer);

/// The peer with a site that holds for all its choices: none where they stand at different ones.
PeerJob with_common_site(PeerJob peer);

}  // namespace tw::launch
