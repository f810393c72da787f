// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "average/fragments.h"
#include "base/blob.h"
#include "base/prng.h"
#include "codec/codec.h"
#include "sim/faults/faults.h"
#include "wire/messages.h"

namespace tw::sim {

/// Changes the messages of a hostile or broken peer: send_nan ... chunk_flip of FaultKind. Input: frames of
/// its session. Output: frames for the network: changed, repeated, or with earlier ones added. Each message
/// that the kind concerns is struck by chance, so that some get through; of forge_mean, each one.
///
/// - send_nan, infinite, huge, negated: values of a Scatter; the payload stays well-formed
/// - claim_more: done microbatches of a Progress: all up to the largest ever named, or a thousand times more
/// - replay: an older message of the same priority follows; heartbeats and addresses are not kept
/// - duplicate: the message goes twice
/// - wrong_length: the payload of a bulk message is cut or lengthened
/// - wrong_round: any message that names its round outside a record; the followed leader is not forged
/// - malformed: the head becomes random bytes that are no message
/// - truncated: the head is cut
/// - flood: Scatters of the next round, kFlood of them with kFloodBytes each, follow a Scatter
/// - chunk_flip: a bit of the payload of a Chunk
/// - forge_mean: offers of a mean, and its chunks, become those of zeros. Offers of a state stay: only the
///   offers of other members say which state is right, so a majority of liars would be believed
class Tamper {
 public:
  /// Chance that a message is struck.
  static constexpr double kChance = 0.3;

  static constexpr std::size_t kFlood = 8, kFloodBytes = 64 * 1024;

  /// Contributions of the run are encoded with `codec`; fragments: of its vector, for forge_mean. Other kinds
  /// of faults change nothing.
  Tamper(FaultKind kind, codec::Codec codec, std::uint64_t seed,
         average::Fragments fragments = average::Geometry{})
      : kind_(kind), codec_(codec), fragments_(std::move(fragments)), random_(seed) {}

  std::vector<Frame> operator()(const Frame& frame);

  /// Messages struck so far.
  int struck() const { return struck_; }

 private:
  static constexpr std::size_t kKept = 64;  ///< of each priority, for replay

  std::vector<Frame> strike(const Frame& frame, const wire::Message& message);
  Frame changed(wire::Message message);
  Frame malformed();
  std::vector<Frame> flooded(const Frame& frame, wire::Scatter scatter);
  Frame truncated(const Frame& frame);
  void change_values(wire::Scatter& scatter);
  float changed_value(float value);
  void claim(wire::Progress& progress);
  void change_length(Blob& payload);
  void flip_bit(Blob& payload);
  void forge(wire::Message& message) const;
  Blob zeros(const average::Geometry& geometry, std::uint64_t segment) const;
  Round changed_round(Round round);
  bool concerns(const wire::Message& message) const;
  void keep(const Frame& frame, const wire::Message& message);

  FaultKind kind_;
  codec::Codec codec_;
  average::Fragments fragments_;
  Prng random_;
  std::array<std::vector<Frame>, 2> earlier_;  ///< control, bulk
  std::uint64_t most_microbatches_ = 1;        ///< largest end of a range ever named
  int struck_ = 0;
};

}  // namespace tw::sim
