// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "swarm/ballots/quorum.h"
#include "swarm/lead.h"
#include "wire/frame.h"

namespace tw::swarm {

inline wire::Member member(std::uint64_t id) { return {PeerId{id}, "p" + std::to_string(id)}; }

inline std::vector<wire::Member> members(const std::vector<std::uint64_t>& ids) {
  std::vector<wire::Member> all;
  for (const std::uint64_t id : ids) all.push_back(member(id));
  return all;
}

/// Each microbatch below `count` in exactly one contribution, and samples that add up to the record's.
inline ::testing::AssertionResult covers_the_batch(const wire::Record& record, std::uint64_t count) {
  RangeSet all;
  std::uint64_t samples = 0;
  for (const wire::Contribution& c : record.contributors) {
    if (all.intersects(c.microbatches)) return ::testing::AssertionFailure() << "a microbatch counts twice";
    all.add(c.microbatches);
    samples += c.samples;
  }
  if (all != RangeSet(Range{0, count})) return ::testing::AssertionFailure() << "only " << to_string(all);
  if (samples != record.samples) return ::testing::AssertionFailure() << samples << " samples";
  return ::testing::AssertionSuccess();
}

inline bool contributes(const wire::Record& record, std::uint64_t id) {
  return std::any_of(record.contributors.begin(), record.contributors.end(),
                     [&](const wire::Contribution& c) { return c.peer == PeerId{id}; });
}

inline constexpr Instant kStart = Instant{} + std::chrono::hours(1);

inline const Digest kRun = digest_of(std::string("run"));
inline const Digest kParameters = digest_of(std::string("parameters"));
inline const Digest kMean = digest_of(std::string("mean"));

/// Six rounds of 64 samples into the run.
inline wire::Record head_of(std::vector<wire::Member> of) {
  wire::Record head = genesis(kRun, kParameters, std::move(of));
  head.round = 6;
  head.first_sample = 320;
  head.samples = 64;
  head.majority_samples = 384;
  return head;
}

/// In tests every update yields other parameters.
inline Digest parameters_after(const wire::Record& record) {
  return digest_of("after " + to_string(wire::digest_of(record)));
}

}  // namespace tw::swarm
