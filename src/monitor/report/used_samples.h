// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/range_set.h"
#include "base/result.h"
#include "monitor/logs/held_history.h"
#include "monitor/logs/log_source.h"

/// Which samples a run used, by the records in its logs.
namespace tw::monitor {

struct UsedSamples {
  struct InRound {
    Round round = 0;
    std::map<PeerId, RangeSet> of;  ///< numbers of samples in the run, by contributor
  };

  /// How the data give the samples: data::SampleOrder.
  struct Order {
    std::uint64_t seed = 0, dataset = 0, block = 1, begun = 0;
  };

  std::vector<InRound> rounds;  ///< of the history that the run holds in the end, in order
  RangeSet all;
  std::vector<DroppedRounds> dropped;  ///< whose samples are not among them
  std::set<std::uint64_t> skipped;
  std::optional<Order> order;  ///< nothing: no log tells it
};

/// The samples in these logs. history: of them. Errors: no record tells its samples, a sample stands in two
/// records, or those of LogSource.
Result<UsedSamples> used_samples(const LogSource& logs, const HeldHistory& history);

/// "60 rounds, 30720 samples, each once", and which ones are left out so far.
std::string text_of(const UsedSamples& used);

}  // namespace tw::monitor
