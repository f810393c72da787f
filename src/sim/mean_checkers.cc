// SPDX-License-Identifier: Apache-2.0
#include "sim/mean_checkers.h"

#include <fmt/format.h>

#include "average/reference.h"
#include "sim/trainer.h"

namespace tw {

void ExactMean::on_commit(const Sighting& s) {
  const Record& record = s.record;
  if (record.round == 0 || !seen_.insert(s.digest).second) return;
  std::vector<std::vector<float>> sums;
  std::vector<WeightedGradient> contributions;
  for (const Contribution& c : record.contributors) {
    const auto spans = samples_of(record, c.microbatches, rules_.microbatch);
    if (c.samples == 0) {
      violated(fmt::format("round {}: contribution {}/{} has no weight", record.round, c.peer.value, c.slot));
      return;
    }
    sums.push_back(reference_contribution(record.parameters, spans, rules_.geometry.length));
    contributions.push_back({c.samples, sums.back()});
  }
  const Digest mean =
      digest_of(std::span<const float>(reference_mean(rules_.codec, contributions, rules_.geometry)));
  if (mean == record.mean) return;
  violated(fmt::format("round {}: the recorded mean is {}, that of its {} contributions {}", record.round,
                       to_string(record.mean), contributions.size(), to_string(mean)));
}

}  // namespace tw
