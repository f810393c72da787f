// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "base/blob.h"
#include "wire/record.h"

/// Gradients, means and states on their way, and the messages that arrange their transfer: the messages of
/// average/ and sync/.
namespace tw::wire {

/// One segment of a contribution, to the owner of the segment: encoded mean gradient of the slot.
struct Scatter {
  StepId step;
  std::uint32_t slot = 0;
  std::uint64_t segment = 0;
  Blob payload;

  static void fields(auto& self, auto&& field) { field(self.step, self.slot, self.segment); }
};

/// One segment of the mean, to all; or of a site-local sum, to the root of the segment. `set` names the
/// contributions in it; of two sets of one sender, that of its later plan (ballot, version) counts.
struct Gather {
  StepId step;
  Ballot ballot = 0;
  std::uint32_t version = 0;
  std::uint64_t set = 0;
  std::uint64_t segment = 0;
  Blob payload;
  bool of_site = false;

  static void fields(auto& self, auto&& field) {
    field(self.step, self.ballot, self.version, self.set, self.segment, self.of_site);
  }
};

/// One segment of a gradient sum that a leaving peer hands over: fp32, little-endian.
struct EntrustedSum {
  StepId step;
  std::uint32_t slot = 0;  ///< of the sender
  std::uint64_t segment = 0;
  Blob payload;

  static void fields(auto& self, auto&& field) { field(self.step, self.slot, self.segment); }
};

/// To a sender of bulk messages: what arrived here lately (average/bandwidth/bandwidth_meter.h).
struct BandwidthReport {
  std::uint64_t bytes = 0;  ///< of its messages, since the last report
  std::uint64_t over_ns = 0;
  bool more = false;       ///< all the while the reporter was backlogged towards the receiver
  bool up_full = false;    ///< the reporter's bandwidth up is used up
  bool down_full = false;  ///< the same down, as far as known

  static void fields(auto& self, auto&& field) {
    field(self.bytes, self.over_ns, self.more, self.up_full, self.down_full);
  }

  bool operator==(const BandwidthReport&) const = default;
};

/// Bulk without meaning: what arrives of it shows the bandwidth (average/bandwidth/probe.h).
struct Padding {
  Blob payload;

  static void fields(auto&, auto&& field) { field(); }
};

enum class ObjectKind : std::uint8_t {
  state,  ///< parameters and optimizer after a record
  mean,   ///< the encoded mean of a record, one chunk per segment
};

struct ObjectId {
  ObjectKind kind = ObjectKind::state;
  Round round = 0;

  static void fields(auto& self, auto&& field) { field(self.kind, self.round); }

  auto operator<=>(const ObjectId&) const = default;
};

/// Asks for an object: the state of the newest round there (round ignored), or the mean of that round.
struct ObjectAsk {
  ObjectId object;

  static void fields(auto& self, auto&& field) { field(self.object); }

  bool operator==(const ObjectAsk&) const = default;
};

/// An object that can be fetched, and how to recognise it.
struct ObjectOffer {
  ObjectId object;
  Record record;
  Digest content;  ///< of the parameters after the record (state) or of the decoded mean
  std::uint64_t bytes = 0;
  std::vector<Digest> chunks;

  static void fields(auto& self, auto&& field) {
    field(self.object, self.record, self.content, self.bytes, self.chunks);
  }

  bool operator==(const ObjectOffer&) const = default;
};

/// The object is not here (any more).
struct ObjectGone {
  ObjectId object;

  static void fields(auto& self, auto&& field) { field(self.object); }

  bool operator==(const ObjectGone&) const = default;
};

struct ChunkAsk {
  ObjectId object;
  std::uint32_t index = 0;

  static void fields(auto& self, auto&& field) { field(self.object, self.index); }

  bool operator==(const ChunkAsk&) const = default;
};

/// Bulk.
struct Chunk {
  ObjectId object;
  std::uint32_t index = 0;
  Blob payload;

  static void fields(auto& self, auto&& field) { field(self.object, self.index); }
};

/// The sender needs nothing more: copies kept for it can go.
struct SyncDone {
  static void fields(auto&, auto&& field) { field(); }

  bool operator==(const SyncDone&) const = default;
};

}  // namespace tw::wire
