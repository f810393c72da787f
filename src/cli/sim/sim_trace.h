// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/scenarios/scenario.h"

namespace tw::cli {

/// Writes the event logs of the peers of a virtual run, events-<peer>.jsonl, as `tw run` writes those of
/// real ones; the wall clock begins with 1970. As a process completes them, starts have the price of the
/// peer's site, where the scenario has one: the history of the run knows no prices.
class TraceLogs {
 public:
  /// The folder exists.
  TraceLogs(std::string folder, const std::vector<sim::SiteSpec>& sites);

  void write(PeerId writer, world::Event event);

  /// Whether everything was written.
  Status finish();

 private:
  std::string folder_;
  std::map<std::string, double> usd_per_h_;  ///< by site
  std::map<PeerId, std::ofstream> files_;
};

}  // namespace tw::cli
