// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "average/fragments.h"
#include "average/reduction/gradient_sum.h"
#include "base/ids.h"
#include "base/result.h"
#include "wire/messages.h"

namespace tw::average {

/// Gradient sums that change hands before their round is averaged: a leaving peer gives its sums to a
/// custodian. The custodian contributes them instead, each in a slot of its own. A step machine; loop thread
/// only.
///
/// Memory, whatever remotes send: kMostKept vectors in fp32.
class Custody {
 public:
  explicit Custody(Fragments fragments) : fragments_(std::move(fragments)) {}

  /// Sums from all senders: as many as there are slots for sums of others.
  static constexpr std::size_t kMostKept = wire::kMostSlots - wire::kLeaseSlots;

  /// Sums of other rounds are dropped.
  void open(StepId step);

  // ---- giving

  struct Sum {
    std::uint32_t slot = 0;
    GradientSum sum;  ///< valid and unchanged until given or called off
  };

  /// Replaces the gift that was under way.
  void give(PeerId to, std::vector<Sum> sums);

  void call_off() { giving_.reset(); }

  /// The next segment for this peer; once the last one is taken, take_given() says so.
  std::optional<wire::Message> next_segment(PeerId to);

  /// True, once, when all segments were handed to the network. An empty gift is given at once.
  bool take_given();

  /// Everything is sent again on the new link.
  void on_new_link(PeerId peer);

  // ---- keeping

  /// An error if the segment is of no use or there is no room for it.
  Status on_segment(PeerId from, const wire::EntrustedSum& segment);

  /// Names the sums that `from` gives; their segments may still be on their way.
  void on_entrust(PeerId from, const wire::Entrust& entrust);

  struct Whole {
    PeerId from;
    wire::Entrust entrust;
  };

  /// All sums of an Entrust, once they are here; one with a value that is not finite is dropped.
  std::optional<Whole> take_whole();

  /// The sum of slot `theirs` of `from` becomes that of slot `own`.
  void keep(PeerId from, std::uint32_t theirs, std::uint32_t own);

  /// The kept sum in an own slot.
  GradientSum sum(std::uint32_t own) const;

  std::uint64_t held_bytes() const;

 private:
  struct Giving {
    PeerId to;
    std::vector<Sum> sums;
    std::size_t sum = 0;        ///< index of the sum under way
    std::uint64_t segment = 0;  ///< number of the next segment
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

  /// Sums of the round have it.
  const Geometry& geometry() const { return fragments_.of(step_.round).geometry; }

  Fragments fragments_;
  StepId step_;
  std::optional<Giving> giving_;
  std::map<Key, Arriving> arriving_;
  std::vector<Whole> words_;  ///< Entrusts whose sums are not all here
  std::map<std::uint32_t, GradientSum> kept_;
};

}  // namespace tw::average
