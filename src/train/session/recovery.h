// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sync/replica.h"
#include "train/session/checkpoints.h"
#include "train/session/core.h"
#include "train/session/search/return_wait.h"

namespace tw::train {

/// This peer's way to the head of the history, from the seed, a checkpoint or the state and missed means of
/// others; and what it gives to others. The Replica decides; the Worker restores, applies and copies. Loop
/// thread only.
///
/// The swarm goes on from a record only once the Worker has the state after it.
class Recovery {
 public:
  /// Both outlive it.
  Recovery(Core& core, Checkpoints& checkpoints);

  sync::Replica& replica() { return replica_; }

  const sync::Replica& replica() const { return replica_; }

  /// The wait for others before this peer resumes alone.
  ReturnWait& returning() { return returning_; }

  const ReturnWait& returning() const { return returning_; }

  /// The peer that leads, by the last record, if this one falls behind for lack of a link to it.
  std::optional<PeerId> unlinked_leader() const;

  /// Linked peers that follow the history.
  std::vector<PeerId> sources() const;

  // ---- taking

  /// The parameters come from the seed.
  void begin_from_seed();

  /// The checkpoint goes on, marked as a beginning by this peer alone.
  void resume(sync::StateImage checkpoint);

  /// Others are ahead. The round under way is dropped already.
  void catch_up(bool differs);

  /// The parameters differ from the leader's after the same mean: true when taking them again would not help,
  /// since this machine computes other bits. Then it has ended.
  bool computes_other_bits();

  /// True when something came of it.
  bool go_on_catching_up();

  /// Its own updates are done: the state of others can be asked for.
  void settle_when_ready();

  /// The state is here, whole, and newer than what others told of: this peer can go on without them.
  bool can_begin_anew() const;

  /// Only if it can. The round under way and its sums are dropped already.
  void begin_anew();

  // ---- giving

  void serve_images();

  /// Chunks that were held back go once segments do not need the bandwidth any more.
  void let_chunks_go(Instant lines_are_free_at);

 private:
  sync::Replica::Others others() const;
  void restore(sync::StateImage image, const event::Restore& from);
  void replay(sync::FetchedMean mean);
  void go_on_from(const sync::Replica::Tip& tip);

  Core& core_;
  Checkpoints& checkpoints_;
  sync::Replica replica_;
  ReturnWait returning_;
};

}  // namespace tw::train
