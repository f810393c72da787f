// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "sim/virtual/events.h"
#include "sim/virtual/network.h"

namespace tw::sim {

/// The network of a world by peers instead of ports: paths as they were drawn, and their faults, which the
/// history notes. A peer is the process that has its id now; after a kill, the last one that had it.
class PeerPaths {
 public:
  /// Both outlive it.
  PeerPaths(Scheduler& scheduler, History& history, std::uint64_t seed)
      : scheduler_(scheduler), history_(history), network_(scheduler, seed) {}

  VirtualNetwork& network() { return network_; }

  const VirtualNetwork& network() const { return network_; }

  /// The next port is this peer's; a twin's is not that of the peer, but what it sends counts.
  void add(PeerId peer, bool is_twin);

  /// The path between two ports is this one, unless a fault changes it.
  void lay(int low, int high, const Quality& drawn);

  void isolate(const std::set<PeerId>& peers, bool close_links);

  /// Holds messages from these peers to the others.
  void hold_from(const std::set<PeerId>& peers);

  /// Holds, or releases, messages to and from this peer.
  void clog(PeerId peer);
  void unclog(PeerId peer);

  /// Ends isolation, holding and clogging; paths are again as they were drawn.
  void heal();
  void reset_link(PeerId a, PeerId b);
  void black_hole(PeerId a, PeerId b);
  Quality path(PeerId a, PeerId b) const;
  void set_path(PeerId a, PeerId b, const Quality& quality);
  void set_line(PeerId peer, Capacity line);

  /// By this peer's processes.
  struct Sent {
    std::uint64_t bytes = 0;  ///< control and (scaled) bulk, whatever became of them
    std::uint64_t control_bytes = 0;
    std::uint64_t messages = 0;
  };

  Sent sent(PeerId peer) const;

  /// By all, as Sent::bytes.
  std::uint64_t sent_bytes() const;

 private:
  void note(const std::string& what) { history_.note(scheduler_.now(), what); }

  Scheduler& scheduler_;
  History& history_;
  VirtualNetwork network_;
  std::vector<PeerId> owners_;   ///< by port number
  std::map<PeerId, int> ports_;  ///< twins left out
  std::map<std::pair<int, int>, Quality> drawn_;
};

}  // namespace tw::sim
