// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/prng.h"
#include "sim/checkers/referee.h"
#include "sim/faults/peer_paths.h"
#include "sim/faults/rare_sites.h"
#include "sim/faults/tamper.h"
#include "sim/virtual/clock.h"
#include "sim/virtual/events.h"
#include "sim/virtual/executor.h"
#include "sim/virtual/files.h"
#include "sim/virtual/process.h"
#include "sim/virtual/scheduler.h"
#include "sim/virtual/store.h"
#include "sim/virtual/topology.h"
#include "sim/virtual/trainer.h"
#include "train/session/session.h"

namespace tw::sim {

struct WorldOptions {
  std::uint64_t seed = 1;
  train::RunOptions run;
  SyntheticModel model;
  std::uint64_t segment_length = 16;  ///< floats
  std::uint64_t chunk_bytes = 256;
  std::uint32_t wait_for = 1;  ///< peers before round 1 begins
  double bulk_scale = 1;       ///< bytes on the network for a byte of a bulk message
  std::vector<SiteSpec> sites{SiteSpec{}};
  std::vector<LinkSpec> links{LinkSpec{}};  ///< the first that fits two sites counts
  bool rare_branches = false;               ///< sim/faults/rare_sites.h
  bool keep_lines = false;                  ///< of the history
  std::vector<std::string> checkers;        ///< of checker_names(); empty: all
  /// Whether this peer cannot read the sample because its store fails. Empty: all can.
  std::function<bool(PeerId, std::uint64_t sample)> lacks{};
  std::string unasked{};  ///< train::Meeting::unasked of a process that is relaunched
};

/// Peers (a session, its doors and a synthetic trainer each) on one virtual network, watched by all checkers.
/// Faults are methods; the scenario decides when to call them. Do not call it from inside a session: a
/// watcher of events schedules its actions.
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
  PeerId add_peer(const PeerSpec& spec);

  /// Draws the values from its site.
  PeerId add_peer(int site = 0);

  /// The process that runs under this identity now; after a kill, the last one that did.
  void kill(PeerId peer, Death death);

  /// The machine is gone, too: its disk keeps what was durable.
  void lose_power(PeerId peer);

  /// A new process with the identity and disk of a killed one.
  void come_back(PeerId peer);

  /// The same with its former command line: at the old address, with the same peers to join (none, if it was
  /// the first one), and a log of its own that says that the run had begun.
  void relaunch(PeerId peer);

  /// A second process with the identity of a living one, on an empty disk. Checkers observe only its effects
  /// on the others.
  void add_twin(PeerId peer);

  void stop(PeerId peer, Duration lasts);

  /// Its compute thread belongs to a program that is busy for `lasts`. announced: the program says so.
  void send_away(PeerId peer, Duration lasts, bool announced);

  /// It cannot have these samples from now on, until the call with nothing.
  void break_store(PeerId peer, StoreFaults::Lacks lacks);

  /// On notice: the session contributes its work and leaves. notice: its machine is gone after that; none:
  /// its user says so.
  void leave(PeerId peer, Duration notice = {});
  /// What its surroundings say to the session. what: for the history, "is at risk".
  void tell(PeerId peer, std::string_view what, std::function<void(train::Session&)> call);

  void jump_clock(PeerId peer, Duration by);

  /// One bit of the parameters of this process changes at the end of its next computation of gradients; then
  /// calls `done` with what they are. Nothing happens if faults are over by then, or if it leads: the
  /// leader's parameters are the run's.
  void flip_memory(PeerId peer, std::uint64_t choice, std::function<void(const Digest&)> done);

  VirtualFiles& disk(PeerId peer);

  /// From now on, until the call with nothing. Returns the number of messages that were changed before.
  int tamper(PeerId peer, std::optional<FaultKind> kind);

  /// Faults are over.
  void become_calm();

  /// Peers whose process lives and has work to do yet, in the order of their coming.
  std::vector<PeerId> alive() const;
  bool lives(PeerId peer) const;

  /// This very process: not one that came back under its id.
  bool lives(const wire::Member& process) const;

  /// Its process lives, or its session came to its end.
  train::SessionView view(PeerId peer) const;

  struct Standing {
    int site = 0;
    bool founds = false;                  ///< no peer to join: it begins the run, or resumes it
    std::optional<world::Phase> phase{};  ///< of its present round, by its last event
    bool is_alone = false;                ///< train::Linking::is_alone
  };

  Standing standing(PeerId peer) const;

  /// Not stopped, and on the same side of all borders; true for a peer and itself.
  bool runs_beside(PeerId peer, PeerId other) const;

  /// Samples whose gradients were computed by anybody, ever; some of them more than once.
  std::uint64_t computed_samples() const;

  std::map<std::string, int> rare() const { return rare_.fired(); }

  /// Runs until nobody is alive any more (all have come to the end), or to the deadline.
  void run_until(Instant deadline);

  /// Lets the checkers judge the end; once.
  void finish();

  History& history() { return history_; }

  PeerPaths& paths() { return paths_; }

  const PeerPaths& paths() const { return paths_; }

  StoreFaults& stores() { return stores_; }

  Referee& referee() { return referee_; }

  const Referee& referee() const { return referee_; }

 private:
  struct Node;
  class Witness;

  Node& node(PeerId peer) const;
  enum class Part { peer, twin };

  /// again: the process whose command line is used once more.
  void begin(PeerId self, const PeerSpec& spec, std::unique_ptr<VirtualFiles> files, Part part,
             const Node* again = nullptr);
  void end(Node& over, Death death);
  void show_disk(const Node& seen);
  void look();
  Survivor survivor(const Node& node) const;
  void on_event(PeerId peer, const world::Event& event);
  void progressed(PeerId peer);

  WorldOptions options_;
  Scheduler scheduler_;
  Prng random_;
  History history_;
  PeerPaths paths_;
  Referee referee_;
  VirtualEvents::Watch watch_;
  VirtualEvents::Watch tap_;       ///< on_event
  VirtualEvents::Watch twin_tap_;  ///< Checker::on_twin_event
  RareSites rare_;
  bool calm_ = false;
  std::vector<std::unique_ptr<Node>> nodes_;  ///< every process that ever was, by port number
  std::map<PeerId, Node*> current_;           ///< the last one of each identity, twins left out
  VirtualStore store_;
  StoreFaults stores_;
};

}  // namespace tw::sim
