// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <map>
#include <string>

#include "base/result.h"
#include "sim/scenarios/scenario.h"

namespace tw::cli {

/// Writes the event logs of the peers of a virtual run, events-<peer>.jsonl, as `tw run` writes those of
/// real ones; the wall clock begins with 1970.
class TraceLogs {
 public:
  /// The folder exists.
  explicit TraceLogs(std::string folder) : folder_(std::move(folder)) {}

  void write(PeerId writer, const world::Event& event);

  /// Whether everything was written.
  Status finish();

 private:
  std::string folder_;
  std::map<PeerId, std::ofstream> files_;
};

}  // namespace tw::cli
