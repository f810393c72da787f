// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "average/reduction/geometry.h"
#include "average/reduction/gradient_sum.h"
#include "base/ids.h"
#include "base/result.h"
#include "wire/messages.h"

namespace tw::average {

/// Gradient sums that change hands before their round is averaged: a peer that leaves gives its own to a
/// custodian, which contributes them in its place, each in a slot of its own. A step machine; loop thread
/// only.
///
/// Memory, whatever remotes send: kMostKept vectors in fp32.
class Custody {
 public:
  explicit Custody(Geometry geometry) : geometry_(geometry) {}

  /// Sums of all senders: as many as there are slots for what others did.
  static constexpr std::size_t kMostKept = wire::kMostSlots - wire::kLeaseSlots;

  /// Sums of other rounds are of no use any more.
  void open(Round round);

  // ---- giving

  struct Sum {
    std::uint32_t slot = 0;
    GradientSum sum;  ///< valid and unchanged until given or called off
  };

  /// Replaces what was under way.
  void give(PeerId to, std::vector<Sum> sums);

  void call_off() { giving_.reset(); }

  /// The next segment for this peer; once the last one is out, take_given() says so.
  std::optional<wire::Message> next_segment(PeerId to);

  /// True, once, when all of it was handed to the network. A gift of nothing is given at once.
  bool take_given();

  /// On a new link all of it is sent again.
  void on_new_link(PeerId peer);

  // ---- keeping

  /// An error: it is of no use, or there is no room for it.
  Status on_segment(PeerId from, const wire::EntrustedSum& segment);

  /// Sums are those of `from`; the segments of them may still be on their way.
  void on_entrust(PeerId from, const wire::Entrust& entrust);

  struct Whole {
    PeerId from;
    wire::Entrust entrust;
  };

  /// All sums of an Entrust are here: once for each. One with a value that is not finite is dropped.
  std::optional<Whole> take_whole();

  /// What `from` had in `theirs` is in the own slot from now on.
  void keep(PeerId from, std::uint32_t theirs, std::uint32_t own);

  /// The sum in an own slot that was kept.
  GradientSum sum(std::uint32_t own) const;

  std::uint64_t held_bytes() const;

 private:
  struct Giving {
    PeerId to;
    std::vector<Sum> sums;
    std::size_t sum = 0;        ///< the next segment is of this one
    std::uint64_t segment = 0;  ///< and has this number
    bool told = false;
  };

  struct Arriving {
    // owners: this, and messages under way once it is kept
    std::shared_ptr<std::vector<float>> values;
    std::vector<bool> here;  ///< by segment
    std::uint64_t missing = 0;
  };

  using Key = std::pair<PeerId, std::uint32_t>;  ///< sender, and its slot

  bool is_whole(const Whole& word) const;
  bool is_finite(const Whole& word) const;

  Geometry geometry_;
  Round round_ = 0;
  std::optional<Giving> giving_;
  std::map<Key, Arriving> arriving_;
  std::vector<Whole> words_;  ///< Entrusts whose sums are not all here
  std::map<std::uint32_t, GradientSum> kept_;
};

}  // namespace tw::average
