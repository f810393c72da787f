// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "average/reduction/geometry.h"
#include "base/blob.h"
#include "base/digest.h"
#include "codec/codec.h"

namespace tw::average {

/// The mean over one set of contributions (contribution_set), as far as it is here: encoded segments, and
/// digests of the decoded ones. When the set changes, the last complete mean stays: this peer may have voted
/// for it, and a later plan may return to its set. Memory: two encoded vectors.
class MeanSegments {
 public:
  /// codec: of the segments (codec_of_mean).
  MeanSegments(const Geometry& geometry, codec::Codec codec);

  std::uint64_t set() const { return set_; }

  /// Drops segments of other sets. Segments of this set that were kept are here at once.
  void change_set(std::uint64_t set);

  bool has(std::uint64_t segment) const;

  /// Empty if it is not here.
  const Blob& at(std::uint64_t segment) const;

  /// Adds a segment that is not here yet, with the digest of its decoded values.
  void put(std::uint64_t segment, Blob encoded, const Digest& decoded);

  /// Adds a segment that another peer sent, of the right length; false if it holds NaN or infinity.
  bool take(std::uint64_t segment, const Blob& encoded);

  bool complete() const { return here_ == encoded_.size(); }

  /// All segments, and the digest of the decoded mean (digest_of_segments); only once complete.
  const std::vector<Blob>& segments() const;
  Digest digest() const;

  /// Bytes of memory: whole vectors, of what is under way and of what is kept. In constant time.
  std::uint64_t held_bytes() const;

 private:
  /// A mean that was complete.
  struct Voted {
    std::uint64_t set = 0;
    std::vector<Blob> segments;
  };

  Geometry geometry_;
  codec::Codec codec_;
  std::uint64_t set_ = 0;
  std::vector<Blob> encoded_;    ///< by segment; empty where it is not here
  std::vector<Digest> digests_;  ///< of the decoded segments that are here
  std::uint64_t here_ = 0;
  Digest digest_;               ///< valid once complete
  std::optional<Voted> voted_;  ///< the last mean that was complete before its set changed
};

}  // namespace tw::average
