// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/session/core.h"
#include "train/session/search/peer_search.h"
#include "wire/link_messages.h"
#include "world/network.h"

namespace tw::train {

/// With which processes this peer links: its greeting, which greetings it admits, and what refusals of others
/// mean. The swarm dials; PeerSearch says when the search is over. Loop thread only.
class Linking {
 public:
  /// The core outlives it.
  explicit Linking(Core& core);

  /// The network is open: greets with the address of the core.
  void begin();

  world::Admission admit(const Frame& hello);

  /// An admitted one.
  void on_open(PeerId peer, const wire::Hello& greeting);

  void on_refused(const std::string& address, const world::DialFailure& failure);

  struct FoundNobody {
    std::string why;
    Ending ending;
  };

  /// To be called with every tick: no peer with the state was reached for too long.
  std::optional<FoundNobody> found_nobody();

  /// To be called with every tick: no other member was linked for the patience of the run.
  bool is_alone_for_good() {
    return search_.is_alone_for_good(core_.clock.now(), core_.swarm.view().is_orphaned());
  }

  /// Time until it gives up; nothing while a peer is linked.
  std::optional<Duration> left() const { return search_.left(core_.clock.now()); }

  /// All linked peers, in the order of ids.
  const std::vector<PeerId>& linked() const { return core_.swarm.view().membership.roster().open_peers(); }

  /// This peer knows a record of the run, or begins it.
  bool has_run() const { return core_.swarm.head() || core_.options.founds(); }

  /// No peer is linked that could let this one go on. Nothing goes on after the last record.
  bool is_alone() const;

  /// The place where peers leave their addresses was read, and shows nobody to dial.
  void looked() { core_.unasked.clear(); }

  /// Dials these peers, which take part in the run or did so.
  void seek(const std::vector<wire::Member>& peers);

 private:
  PeerSearch::Situation situation() const;
  world::Refusal turned_away(world::Refusal refusal);
  std::optional<world::Refusal> of_another_run(const wire::Hello& greeting) const;
  std::string own_side(const world::Refusal& refusal) const;
  void was_rejected(const std::string& address, const world::Refusal& refusal);
  std::vector<std::string> others_of_last_majority() const;

  Core& core_;
  PeerSearch search_;
};

}  // namespace tw::train
