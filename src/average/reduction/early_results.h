// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "average/reduction/arrivals.h"
#include "base/blob.h"
#include "base/ids.h"
#include "wire/messages.h"

namespace tw::average {

/// Results that others sent (segments of the mean and of site-local sums of groups) by sender, under any
/// plan: they may come before the plan that they belong to or that names their sender. They count only if
/// some plan so far has named their sender. Memory: two encoded vectors per sender.
class EarlyResults {
 public:
  explicit EarlyResults(std::uint64_t segments) : means_(segments), site_sums_(segments) {}

  /// From now on results of the peers in this plan count.
  void know(const wire::Plan& plan);

  bool knows(PeerId peer) const { return known_.contains(peer); }

  /// Keeps a segment of the right length. False when the sender sent it already.
  bool put(PeerId from, const wire::Gather& gather);

  /// Segments of the mean of one set from one sender that counts; empty where nothing came.
  struct Mean {
    PeerId from;
    const std::vector<Blob>& segments;
  };

  std::vector<Mean> means_of(std::uint64_t set) const;

  /// A segment of the site-local sum of a group, by the set of the group; empty when no sender that counts
  /// sent it.
  Blob site_sum(std::uint64_t set, std::uint64_t segment) const;

  /// Drops the results of a sender that does not count.
  void drop(PeerId sender);

  /// Bytes of memory. In constant time.
  std::uint64_t held_bytes() const { return means_.held_bytes() + site_sums_.held_bytes(); }

 private:
  std::set<PeerId> known_;  ///< peers that some plan so far has named
  ReceivedResults means_;
  ReceivedResults site_sums_;
};

}  // namespace tw::average
