// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario.h"

namespace tw {

Scenario storm_scenario() {
  Scenario storm;
  storm.name = "storm";
  storm.sites = {SiteSpec{.name = "north", .peers = 5}, SiteSpec{.name = "south", .peers = 3}};
  storm.workload.checkpoint_every = Between(1, 4);
  storm.workload.norm_cap = 600;
  for (const FaultName& row : fault_names()) {
    FaultSpec spec{.kind = row.kind, .chance = 0.12, .least = 1, .most = 2};
    if (row.kind == FaultKind::kill || row.kind == FaultKind::join)
      spec = {.kind = row.kind, .chance = 0.7, .most = 4};
    if (row.kind == FaultKind::stop) spec.lasts_s = Between(0.1, 120);
    storm.faults.push_back(spec);
  }
  return storm;
}

}  // namespace tw
