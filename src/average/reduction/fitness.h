// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "codec/codec.h"
#include "wire/messages.h"

namespace tw::average {

/// A peer whose values can enter no mean, and why.
struct Unfit {
  PeerId peer;
  /// not_finite (NaN, infinity, 2^127 and beyond: is_addable; in a mean, too) or too_large.
  wire::StallCause why = wire::StallCause::not_finite;
  double norm = 0;  ///< too_large: per sample, of the known part of the contribution
};

/// Judges which values may enter a mean (I5), own ones too, and remembers the peers whose values may not.
class Fitness {
 public:
  /// norm_cap: largest L2 norm, per sample, of the known part of a contribution; 0: none.
  Fitness(codec::Codec codec, double norm_cap) : codec_(codec), norm_cap_(norm_cap) {}

  /// Sum of the squares of encoded values; 0 without a cap, which nobody compares it with.
  double squares_of(std::span<const std::byte> piece) const;

  /// addable: the values are finite. squares: over all that is known of the contribution. samples: 0 if no
  /// plan has said how many; then a sum is judged only when it is added.
  std::optional<Unfit> judge(PeerId from, bool addable, double squares, std::uint64_t samples) const;

  /// The first word about each peer is news.
  void report(const Unfit& unfit);

  /// What is known of peers on which this record counts is news again: its maker, another leader, may not
  /// have heard of it.
  void report_again(const wire::Record& draft);

  std::vector<Unfit> take_news();

  void forget(PeerId peer) { unfit_.erase(peer); }

 private:
  codec::Codec codec_;
  double norm_cap_;
  std::map<PeerId, Unfit> unfit_;
  std::vector<Unfit> news_;
};

}  // namespace tw::average
