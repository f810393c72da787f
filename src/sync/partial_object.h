// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/blob.h"
#include "base/digest.h"
#include "base/time.h"
#include "wire/messages.h"

namespace tw::sync {

/// Required division of an object: chunks of chunk_bytes; the last one may be shorter.
struct ChunkLayout {
  std::uint64_t bytes = 0;
  std::uint64_t chunk_bytes = 0;

  std::uint64_t count() const { return (bytes + chunk_bytes - 1) / chunk_bytes; }

  std::uint64_t size(std::uint64_t index) const { return std::min(chunk_bytes, bytes - index * chunk_bytes); }
};

/// An object on its way to this peer: the chosen offer, and which of its chunks are here. A missing chunk is
/// either free (asked of no source), or asked of one source (sync/sources.h).
///
/// Memory: the list of digests in the offer, and the object.
class PartialObject {
 public:
  /// Begins anew with this offer, whose chunks must be cut by the layout; all chunks are free. content: the
  /// digest of the whole offer.
  void begin(Instant now, const wire::ObjectOffer& offer, const Digest& content, const ChunkLayout& layout);

  /// No object is on its way.
  void clear() { *this = {}; }

  bool begun() const { return offer_.has_value(); }

  bool is(const Digest& content) const { return begun() && content == content_; }

  Instant since() const { return since_; }

  /// The chosen offer; requires begun().
  const wire::ObjectOffer& offer() const;

  /// True if the offer has such a chunk, with just these bytes.
  bool fits(const wire::Chunk& chunk) const;

  /// Keeps a chunk that fits. False when it was here before.
  bool add(wire::Chunk chunk);

  bool any_here() const { return here_ > 0; }

  bool complete() const { return begun() && here_ == chunks_.size(); }

  /// The first free chunk that is not in `but`.
  std::optional<std::uint32_t> next_free(const std::set<std::uint32_t>& but) const;

  /// A source is asked for a chunk that was free.
  void take(std::uint32_t index);

  /// The source is not asked for the chunk any more.
  void give_back(std::uint32_t index);

  /// Bytes of the chunks that are here.
  std::uint64_t bytes_here() const;

  /// Bytes of memory.
  std::uint64_t held_bytes() const;

  /// Hands out the offer and all chunks of a complete object; then no object is on its way.
  struct Whole {
    wire::ObjectOffer offer;
    std::vector<Blob> chunks;
  };

  Whole release();

 private:
  std::optional<wire::ObjectOffer> offer_;
  Digest content_;
  ChunkLayout layout_;
  Instant since_{};
  std::vector<Blob> chunks_;  ///< empty: not here yet
  std::uint64_t here_ = 0;    ///< chunks
  std::set<std::uint32_t> free_;
};

}  // namespace tw::sync
