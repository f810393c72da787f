// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/check.h"
#include "wire/messages.h"

namespace tw::average {

/// The duties under a plan, segment by segment, as one peer sees them. Contributions of a group go to the
/// segment's owner in the site with the group's number, and the group's mean from there to the segment's
/// root. The mean goes from the root to the owners, and from each owner to its site. A plan without sites has
/// one site, of all participants, where every owner is the root.
class Layout {
 public:
  struct Input {
    PeerId peer;
    std::uint32_t slot = 0;
    std::uint64_t samples = 0;
    float weight = 0;  ///< its share of the samples of its group
  };

  struct Group {
    std::uint32_t site = 0;
    std::uint64_t set = 0;  ///< contribution_set
    std::uint64_t samples = 0;
    float weight = 0;           ///< its share of all samples
    std::vector<Input> inputs;  ///< in the order in which they are added
  };

  /// A layout without participants.
  Layout() = default;

  /// Nothing if the plan is malformed: shares or sites do not cover the vector or name a non-participant, a
  /// participant is not in just one site, no contributions, one named twice, weights of 0.
  static std::optional<Layout> of(const wire::Plan& plan, std::uint64_t segments, PeerId self);

  /// In the order in which the mean adds them; each has inputs.
  const std::vector<Group>& groups() const { return groups_; }

  PeerId root(std::uint64_t segment) const {
    TW_CHECK(segment < roots_.size());
    return roots_[segment];
  }

  /// The mean is already at the root, or at least this site's part at its owner. Then the owner wants no
  /// contributions, and the root no site-local sum.
  bool closed(std::uint32_t site, std::uint64_t segment) const {
    TW_CHECK(site < sites_.size() && segment < closed_.size());
    return closed_[segment] || (!sites_[site].closed.empty() && sites_[site].closed[segment]);
  }

  /// The owner of a segment in a site; nothing if the site has no members.
  std::optional<PeerId> owner(std::uint32_t site, std::uint64_t segment) const {
    TW_CHECK(site < sites_.size() && segment < roots_.size());
    const std::vector<PeerId>& owners = sites_[site].owners;
    return owners.empty() ? std::nullopt : std::optional(owners[segment]);
  }

  bool is_root(std::uint64_t segment) const { return root(segment) == self_; }

  /// True if this peer is the owner in its site.
  bool owns(std::uint64_t segment) const { return site_ && owner(*site_, segment) == self_; }

  /// This peer's site, whose owners send it the mean; nothing when it is no participant.
  std::optional<std::uint32_t> site() const { return site_; }

  /// The group of this peer's site; null if nobody there contributes.
  const Group* own_group() const { return own_group_ < groups_.size() ? &groups_[own_group_] : nullptr; }

  /// The contribution in this slot, if the plan counts it; else null.
  const Input* input(PeerId peer, std::uint32_t slot) const;

  /// This peer adds that contribution to the segment.
  bool is_addend(PeerId peer, std::uint32_t slot, std::uint64_t segment) const;

  /// The peers to which this one sends the mean of a segment once it has it.
  std::vector<PeerId> receivers(std::uint64_t segment) const;

 private:
  struct Site {
    std::vector<PeerId> members;
    std::vector<PeerId> owners;  // by segment
    std::vector<bool> closed;    // the same
  };

  static std::optional<Site> site_of(const wire::SitePlan& plan, std::uint64_t segments);
  bool take_sites(const wire::Plan& plan, std::uint64_t segments);
  bool take_groups(const wire::Plan& plan);

  PeerId self_;
  std::vector<Group> groups_;
  std::size_t own_group_ = 0;
  std::vector<PeerId> roots_;
  std::vector<bool> closed_;
  std::vector<Site> sites_;
  std::optional<std::uint32_t> site_;
};

}  // namespace tw::average
