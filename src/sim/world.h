// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/prng.h"
#include "sim/between.h"
#include "sim/checkers.h"
#include "sim/clock.h"
#include "sim/events.h"
#include "sim/executor.h"
#include "sim/files.h"
#include "sim/ledger.h"
#include "sim/network.h"
#include "sim/process.h"
#include "sim/scheduler.h"
#include "sim/trainer.h"
#include "train/session.h"

namespace tw {

struct WorldOptions {
  std::uint64_t seed = 1;
  RunOptions run;
  SyntheticModel model;
  std::uint64_t segment_length = 16;  ///< floats
  std::uint64_t chunk_bytes = 256;
  std::uint32_t wait_for = 1;  ///< peers before round 1 begins
  Between samples_per_s{10, 80};
  Between latency_s{1e-4, 0.15};  ///< one way, for each pair
  double jitter = 0.2;            ///< share of the latency
  Between bytes_per_s{1e5, 1e7};  ///< a peer's line and each path
  bool keep_stale_seals = false;
  bool keep_lines = false;  ///< of the history
};

/// Peers (a session, its doors and a synthetic trainer each) on one virtual network, watched by all checkers.
/// Faults are methods; who calls them when is the scenario's affair. Nothing here may be called from inside a
/// session: a watcher of events schedules what it wants to do.
class World {
 public:
  explicit World(const WorldOptions& options);
  ~World();

  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Scheduler& scheduler() { return scheduler_; }

  Instant now() const { return scheduler_.now(); }

  /// Sees each event of each peer as it is emitted.
  void watch(VirtualEvents::Watch watch) { watch_ = std::move(watch); }

  /// The first one starts the run; later ones join through all peers that live.
  PeerId add_peer();

  void kill(PeerId peer, Death death);
  void stop(PeerId peer, Duration lasts);
  void resume_all();
  void isolate(const std::set<PeerId>& peers, bool close_links);
  void heal();
  void reset_link(PeerId a, PeerId b);
  void set_path(PeerId a, PeerId b, const Quality& quality);

  /// On notice: the session hands in what is done and goes.
  void leave(PeerId peer);

  /// Peers whose process lives and has work to do yet, in the order of their coming.
  std::vector<PeerId> alive() const;
  bool lives(PeerId peer) const;
  SessionView view(PeerId peer) const;

  /// Of its present round, by its last event; nothing before its first round.
  std::optional<Phase> phase(PeerId peer) const;

  /// Not stopped, and on the same side of all borders; true for a peer and itself.
  bool runs_beside(PeerId peer, PeerId other) const;

  const Ledger& ledger() const { return ledger_; }

  /// Records that were proposed but not decided (as far as anybody knows) for the round after the newest.
  std::vector<Record> open_drafts() const;

  /// Runs until nobody is alive any more (all have come to the end), or to the deadline.
  void run_until(Instant deadline);

  /// Lets the checkers judge the end; once.
  void finish();

  std::vector<Violation> violations() const;

  History& history() { return history_; }

 private:
  struct Node;
  class Witness;

  Node& node(PeerId peer) const;
  void look();
  void look_at(Node& node);
  Survivor survivor(const Node& node) const;
  void on_event(PeerId peer, const Event& event);
  void on_sent(const Frame& frame);
  void progressed(PeerId peer);
  void note(const std::string& what);
  SessionOptions session_options(PeerId self) const;

  WorldOptions options_;
  Scheduler scheduler_;
  Prng random_;
  VirtualNetwork network_;
  History history_;
  Ledger ledger_;
  std::map<Digest, Record> drafts_;
  std::vector<std::unique_ptr<Checker>> checkers_;
  std::vector<Violation> violations_;  ///< that are no checker's
  VirtualEvents::Watch watch_;
  VirtualEvents::Watch tap_;  ///< on_event
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace tw
