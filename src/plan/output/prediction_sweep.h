// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "plan/model/cost.h"

/// A prediction for each of several numbers of peers: `tw predict --sweep peers=1..64`.
namespace tw::plan {

struct SweepRange {
  int least = 1;
  int most = 1;
};

/// "peers=1..64".
Result<SweepRange> parse_sweep(const std::string& text);

struct SweepPoint {
  std::vector<PeerGroup> peers;
  Prediction prediction;
  Cost cost;
};

/// The range's ends, and the numbers between them of which each is twice the one before. Groups keep their
/// proportions.
Result<std::vector<SweepPoint>> sweep(const Workload& workload, const std::vector<PeerGroup>& peers,
                                      SweepRange range, const Prices& prices);

/// The table, and what it says in sentences.
std::string to_text(const Workload& workload, const std::vector<SweepPoint>& points);
std::string to_json(const Workload& workload, const std::vector<SweepPoint>& points);

/// The sentences alone.
std::vector<std::string> answers_of(const Workload& workload, const std::vector<SweepPoint>& points);

}  // namespace tw::plan
