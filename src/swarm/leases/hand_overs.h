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

/// The leader's decisions about peers that leave within a known time, in one round under one ballot, before
/// its call: which of them wait for the end of the round, which hand over their sums, to which peer, and when
/// they may go. A step machine; one thread.
class HandOvers {
 public:
  /// sum_bytes: size of a gradient sum that is handed over.
  HandOvers(Round round, Ballot ballot, std::uint64_t sum_bytes)
      : round_(round), ballot_(ballot), sum_bytes_(sum_bytes) {}

  /// Progress of a peer, with its outlook and the time it has left.
  void on_progress(Instant now, PeerId peer, const wire::Progress& progress);

  void forget(PeerId peer) { leavers_.erase(peer); }

  /// Orders that are due. reduce: expected time of averaging.
  wire::Outbox step(Instant now, const PeerStatus& peers, const Leasing& leasing, Duration reduce);

  std::size_t notes() const { return leavers_.size(); }

  /// Time to the end of the round (empty: not known), time of a hand-over, and time until the peer has to go.
  struct Costs {
    std::optional<double> round_s;
    double transfer_s = 0;
    double notice_s = 0;
  };

  /// False if the round ends within the notice, and either sooner than the transfer or within 2 s.
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
