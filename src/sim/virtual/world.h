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
#include "sim/checkers/checkers.h"
#include "sim/checkers/held_bytes.h"
#include "sim/checkers/ledger.h"
#include "sim/faults/rare_sites.h"
#include "sim/faults/tamper.h"
#include "sim/virtual/clock.h"
#include "sim/virtual/events.h"
#include "sim/virtual/executor.h"
#include "sim/virtual/files.h"
#include "sim/virtual/network.h"
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
  void break_store(PeerId peer, std::function<bool(std::uint64_t sample)> lacks);

  /// The store of checkpoints answers this peer no more; and again.
  void close_store(PeerId peer) { without_store_.insert(peer); }

  void open_store(PeerId peer) { without_store_.erase(peer); }

  void resume_all();
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

  /// On notice: the session contributes its work and leaves. notice: its machine is gone after that; none:
  /// its user says so.
  void leave(PeerId peer, Duration notice = {});
  void set_at_risk(PeerId peer, bool at_risk);

  void jump_clock(PeerId peer, Duration by);

  /// One bit of the parameters of this process changes at the end of its next computation of gradients; then
  /// calls `done` with what they are. Nothing happens if faults are over by then, or if it leads: the
  /// leader's parameters are the run's.
  void flip_memory(PeerId peer, std::uint64_t choice, std::function<void(const Digest&)> done);

  VirtualFiles& disk(PeerId peer);

  /// From now on, until the call with nothing.
  void tamper(PeerId peer, std::optional<FaultKind> kind);

  /// Messages changed so far.
  int tampered(PeerId peer) const;

  /// Tells the checkers.
  void struck(const Strike& strike);
  void become_calm();

  /// Peers whose process lives and has work to do yet, in the order of their coming.
  std::vector<PeerId> alive() const;
  bool lives(PeerId peer) const;

  /// This very process: not one that came back under its id.
  bool lives(const wire::Member& process) const;

  /// Its process lives, or its session came to its end.
  train::SessionView view(PeerId peer) const;

  /// Phase of its present round, by its last event; nothing before its first round.
  std::optional<world::Phase> phase(PeerId peer) const;

  int site(PeerId peer) const;

  /// It has no peer to join: it begins the run, or resumes it.
  bool founds(PeerId peer) const;

  /// Not stopped, and on the same side of all borders; true for a peer and itself.
  bool runs_beside(PeerId peer, PeerId other) const;

  const Ledger& ledger() const { return ledger_; }

  /// Samples whose gradients were computed by anybody, ever; some of them more than once.
  std::uint64_t computed_samples() const;

  /// By this peer's processes.
  struct Sent {
    std::uint64_t bytes = 0;  ///< control and (scaled) bulk, whatever became of them
    std::uint64_t control_bytes = 0;
    std::uint64_t messages = 0;
  };

  Sent sent(PeerId peer) const;

  /// By all, as Sent::bytes.
  std::uint64_t sent_bytes() const;

  std::map<std::string, int> rare() const { return rare_.fired(); }

  /// Records that were proposed but not decided (as far as anybody knows) for the round after the newest.
  std::vector<wire::Record> open_drafts() const;

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
  enum class Part { peer, twin };

  /// again: the process whose command line is used once more.
  void begin(PeerId self, const PeerSpec& spec, std::unique_ptr<VirtualFiles> files, Part part,
             const Node* again = nullptr);
  void lay_paths(const Node& added);
  void end(Node& over, Death death);
  void show_disk(const Node& seen);
  void look();
  void look_at(Node& node);
  Survivor survivor(const Node& node) const;
  HeldSizes held_sizes() const;
  void on_event(PeerId peer, const world::Event& event);
  void on_sent(const Frame& frame);
  std::map<std::string, std::uint64_t> given_by(const Node& sender) const;
  void progressed(PeerId peer);
  void note(const std::string& what);
  train::SessionOptions session_options(PeerId self, const PeerSpec& spec);
  SyntheticModel model_of(PeerId self) const;
  bool lacks(PeerId peer, std::uint64_t sample) const;

  WorldOptions options_;
  Scheduler scheduler_;
  Prng random_;
  VirtualNetwork network_;
  History history_;
  Ledger ledger_;
  std::map<Digest, wire::Record> drafts_;
  std::vector<std::unique_ptr<Checker>> checkers_;
  std::vector<Violation> violations_;  ///< that are no checker's
  VirtualEvents::Watch watch_;
  VirtualEvents::Watch tap_;  ///< on_event
  RareSites rare_;
  bool calm_ = false;
  std::vector<std::unique_ptr<Node>> nodes_;  ///< every process that ever was, by port number
  std::map<PeerId, Node*> current_;           ///< the last one of each identity, twins left out
  std::map<std::pair<int, int>, Quality> drawn_paths_;
  std::map<PeerId, std::function<bool(std::uint64_t sample)>> broken_stores_;  ///< true: lacks it
  VirtualStore store_;
  std::set<PeerId> without_store_;
};

}  // namespace tw::sim
