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

inline std::vector<PeerId> owners_of(const std::vector<Participant>& participants) {
  std::vector<PeerId> all;
  for (const Participant& participant : participants) {
    if (participant.owns) all.push_back(participant.peer);
  }
  return all;
}

inline std::vector<wire::Share> equal_shares(std::uint64_t segments, const std::vector<PeerId>& owners) {
  std::vector<wire::Share> shares;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const std::uint64_t first = segments * i / owners.size();
    shares.push_back({owners[i], first, segments * (i + 1) / owners.size() - first});
  }
  return shares;
}

/// The same shares, but these segments are this owner's, and not sealed.
inline std::vector<wire::Share> moved_to(PeerId owner, const RangeSet& segments,
                                         const std::vector<wire::Share>& before) {
  std::vector<wire::Share> shares;
  for (const wire::Share& share : before) {
    for (std::uint64_t s = share.first; s < share.first + share.count; ++s) {
      const bool moves = segments.contains(s);
      const wire::Share now{moves ? owner : share.owner, s, 1, share.sealed && !moves};
      const bool same =
          !shares.empty() && shares.back().owner == now.owner && shares.back().sealed == now.sealed;
      if (same) {
        ++shares.back().count;
      } else {
        shares.push_back(now);
      }
    }
  }
  return shares;
}

/// Equal shares; those of owners that are gone fall to the first. No sites.
inline ShareRules equal_share_rules() {
  ShareRules rules;
  rules.cut = [](std::uint64_t segments, const std::vector<Participant>& participants,
                 const std::vector<wire::Share>&) { return equal_shares(segments, owners_of(participants)); };
  rules.move = [](const std::vector<wire::Share>& before, const RangeSet& segments,
                  const std::vector<Participant>& participants) {
    return segments.empty() ? before : moved_to(owners_of(participants).front(), segments, before);
  };
  rules.seconds = [](const wire::Plan&, const std::vector<Participant>&) { return 0.0; };
  rules.plant = [](wire::Plan&, const std::vector<Participant>&) {};
  rules.follow = [](wire::Plan& plan, const wire::Plan& before, const std::vector<Participant>&) {
    plan.shares = before.shares;
  };
  rules.mend = [](wire::Plan&, std::uint64_t, const std::vector<Participant>&) {};
  return rules;
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
