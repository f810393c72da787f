// SPDX-License-Identifier: Apache-2.0
#include "launch/engines/cloud_names.h"

#include <algorithm>
#include <cctype>

#include "base/text/number.h"

namespace tw::launch {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// use1-az1, usw2-az3: no name of a zone ends so.
bool is_aws_zone_id(const market::Site& site) {
  const auto at = site.zone.rfind("-az");
  return site.provider == "aws" && at != std::string::npos && at + 3 < site.zone.size() &&
         std::all_of(site.zone.begin() + static_cast<std::ptrdiff_t>(at) + 3, site.zone.end(), is_digit);
}

}  // namespace

Gpus gpus_of(const Machine& machine) {
  if (machine.gpu.empty() || machine.gpu == "cpu") return {};
  const auto at = machine.gpu.find('x');
  const bool counted =
      at != std::string::npos && at > 0 && at + 1 < machine.gpu.size() &&
      std::all_of(machine.gpu.begin(), machine.gpu.begin() + static_cast<std::ptrdiff_t>(at), is_digit);
  if (!counted) return {machine.gpu, 1};
  return {machine.gpu.substr(at + 1), parse_number<int>(machine.gpu.substr(0, at)).value_or(1)};
}

std::string type_of(const Machine& machine) {
  const bool is_name = machine.vm_type.find(' ') == std::string::npos;
  return is_name ? machine.vm_type.substr(0, machine.vm_type.find('+')) : std::string();
}

std::string region_of(const Machine& machine) {
  return market::is_area(machine.site) ? std::string() : machine.site.region;
}

std::string zone_of(const Machine& machine) {
  return is_aws_zone_id(machine.site) ? std::string() : machine.site.zone;
}

std::string aws_zone_id_of(const Machine& machine) {
  return is_aws_zone_id(machine.site) ? machine.site.zone : std::string();
}

bool is_spot(const Machine& machine) { return machine.purchase == market::Purchase::spot; }

std::vector<Machine> choices_of(const PeerJob& peer) {
  std::vector<Machine> machines = {peer.machine};
  machines.insert(machines.end(), peer.alternatives.begin(), peer.alternatives.end());
  return machines;
}

PeerJob with_common_site(PeerJob peer) {
  const bool common = std::ranges::all_of(
      peer.alternatives, [&](const Machine& other) { return other.site == peer.machine.site; });
  if (!common) peer.machine.site = {};
  return peer;
}

}  // namespace tw::launch
