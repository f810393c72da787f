// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "swarm/leases/leasing.h"
#include "swarm/members/peer_status.h"
#include "wire/outbox.h"

namespace tw::swarm {

/// The leader's side of peers that leave within a known time, in one round under one ballot, before its call:
/// whether each waits for the end of the round or hands over what it did, to whom, and when it may go. A step
/// machine; one thread.
class HandOvers {
 public:
  /// sum_bytes: of a gradient sum as it is handed over.
  HandOvers(Round round, Ballot ballot, std::uint64_t sum_bytes)
      : round_(round), ballot_(ballot), sum_bytes_(sum_bytes) {}

  /// What a peer says of itself.
  void on_progress(Instant now, PeerId peer, const wire::Progress& progress);

  void forget(PeerId peer) { leavers_.erase(peer); }

  /// Orders that are due. reduce: what averaging is expected to take.
  wire::Outbox step(Instant now, const PeerStatus& peers, const Leasing& leasing, Duration reduce);

  std::size_t notes() const { return leavers_.size(); }

  /// What waiting for the end of the round, and handing over, would take; nothing: not known.
  struct Costs {
    std::optional<double> round_s;
    double transfer_s = 0;
    double notice_s = 0;
  };

  /// Whichever is sooner, of what ends within the notice. A round that is nearly over is waited for.
  static bool hands_over(const Costs& costs);

 private:
  struct Leaver {
    Instant goes{};
    std::optional<PeerId> to{};
    Instant told{};
    bool released = false;
  };

  bool has_room(const Leasing& leasing, PeerId custodian, PeerId leaver) const;
  std::optional<PeerId> custodian(const PeerStatus& peers, const Leasing& leasing, PeerId leaver) const;
  double transfer_s(const PeerStatus& peers, const Leasing& leasing, PeerId leaver, PeerId to) const;
  std::optional<wire::HandOver> order(Instant now, const PeerStatus& peers, const Leasing& leasing,
                                      Duration reduce, PeerId peer);

  Round round_;
  Ballot ballot_;
  std::uint64_t sum_bytes_;
  std::map<PeerId, Leaver> leavers_;
};

}  // namespace tw::swarm
