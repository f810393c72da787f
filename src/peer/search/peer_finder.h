// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/executor_thread.h"
#include "host/loop.h"
#include "host/store/store_files.h"
#include "peer/links.h"
#include "peer/search/known_peers.h"
#include "peer/search/meeting_place.h"
#include "swarm/members/rendezvous.h"
#include "train/session/session.h"

namespace tw::peer {

/// Finds the peers of a run for one that no other is linked to: it dials those that it knew in former times,
/// and those whose notices lie in the folder of the run; and it keeps up the notice of this peer. The store
/// is asked on a thread of its own. Loop thread only; loop and options outlive it.
class PeerFinder {
 public:
  struct Calls {
    std::function<void(const std::vector<wire::Member>&)> dial;
    std::function<void()> looked;  ///< the folder was read, and shows nobody to dial
    Warn say;
  };

  /// address: of this peer; empty: it only dials. training: wire::Hello::run.
  PeerFinder(host::Loop& loop, const Options& options, const std::string& address, const Digest& training,
             Calls calls);
  PeerFinder(const PeerFinder&) = delete;
  PeerFinder& operator=(const PeerFinder&) = delete;

  /// Call now and then, with the session of this peer.
  void look(train::Session& session);

  /// This peer has left: removes its notice, for 3 s at most, or until cut_short(). Says why it stays.
  void leave(const std::function<bool()>& cut_short);

  world::StoreUses uses() const { return files_.uses(); }

 private:
  using Errand = swarm::Rendezvous::Errand;

  void recall();
  void look_around();
  void renew();
  void found(const MeetingPlace::Found& found);
  void over(Errand errand, const Status& status);
  void write_down();
  bool is_news(const std::string& what);
  /// Those elsewhere.
  std::vector<wire::Member> unlinked(std::vector<wire::Member> peers) const;
  void say_ignored(const std::vector<std::string>& ignored);

  host::Loop& loop_;
  const std::string address_;
  const bool searches_;  ///< it has been given others, or the run had begun
  Calls calls_;
  std::atomic<bool> hurry_ = false;  ///< the end must not wait for a store: no more requests
  host::StoreFiles files_;
  std::optional<MeetingPlace> place_;
  KnownPeers known_;
  swarm::Rendezvous rendezvous_;
  std::vector<PeerId> linked_;
  std::set<std::string> told_of_;  ///< what is said once
  std::string told_;               ///< the last line about a search in vain
  bool left_ = false;
  host::ThreadExecutor thread_;  // last: its jobs use the others
};

}  // namespace tw::peer
