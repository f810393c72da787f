// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "average/fragments.h"
#include "base/digest.h"
#include "base/ids.h"
#include "base/time.h"
#include "codec/codec.h"
#include "sim/faults/faults.h"
#include "train/session/session.h"
#include "wire/record.h"
#include "world/files.h"

/// The invariants of the design (section 4), each judged from outside while a world runs.
namespace tw::sim {

struct Violation {
  std::string checker;
  std::string message;
};

/// Facts that decide which records are right, and limits of time.
struct Rules {
  swarm::TargetBatch batch;  ///< RunOptions::target_batch()
  codec::Codec codec = codec::Codec::fp32;
  average::Fragments fragments = average::Geometry{};
  bool stochastic = false;      ///< RunOptions::dithers()
  bool error_feedback = false;  ///< RunOptions::feeds_back()
  train::Mode mode = train::Mode::sync;
  double norm_cap = 0;            ///< RunOptions::norm_cap; 0: none
  Round digest_every = 1;         ///< with more, peers do not tell their parameters after each round
  Digest run;                     ///< of the checkpoints
  std::string checkpoint_folder;  ///< on each disk; empty: none are written
  std::string checkpoint_copies;  ///< folder in the store; empty: none are made
  std::size_t checkpoint_keep = 2;
  Duration patience{};  ///< RunOptions::patience

  /// Prices of machines and traffic.
  struct SitePrices {
    double usd_per_h = 0;          ///< of one peer
    double egress_usd_per_gb = 0;  ///< of what leaves the site
  };

  std::map<std::string, SitePrices> prices;  ///< by name of the site
  /// Time of a round without faults by the slowest majority of the peers (each of its phases, and the slowest
  /// microbatch under way at its end, included). 0: not known, and bounds that depend on it are not checked.
  Duration round_time{};
  /// Time that a peer with a notice needs to hand over one sum, its slowest item and a reserve included.
  Duration handover_time{};
  Duration round_trip{};     ///< the longest between two peers, queues included
  Duration transfer_time{};  ///< of the state to one joiner
  /// Samples that nobody can decode: the run goes on without them. None: no sample is.
  std::function<bool(std::uint64_t sample)> broken{};

  bool overlaps() const { return train::overlaps(mode); }

  /// What this round averages, in segments.
  const average::Geometry& geometry(Round round) const { return fragments.of(round).geometry; }

  /// Samples that the record's round has in all, and their microbatches.
  std::uint64_t batch_of(const wire::Record& record) const {
    return record.batch ? record.batch->samples : batch.target_batch_size;
  }

  std::uint64_t microbatches_of(const wire::Record& record) const {
    return (batch_of(record) + batch.microbatch - 1) / batch.microbatch;
  }
};

/// A record as one peer reported it.
struct Sighting {
  PeerId peer;
  const wire::Record& record;
  Digest digest;          ///< of the record
  Digest parameters{};    ///< applied: after the record's update
  bool restored = false;  ///< applied: by a transfer of the state
};

/// A living peer, seen from outside.
struct Survivor {
  PeerId peer;
  train::SessionView view;
  Duration idle{};  ///< time it ran without computing, committing or applying anything
  Instant now{};
  std::uint64_t held_bytes = 0;        ///< held because of messages of others
  std::uint64_t held_bytes_limit = 0;  ///< 0: not known
  std::uint64_t incarnation = 0;       ///< of its process
};

/// A fault has struck.
struct Strike {
  FaultKind kind{};
  std::vector<PeerId> victims;
  Instant at{};
  Duration lasts{};     ///< of lasting faults; 0: until faults are over
  Digest parameters{};  ///< of the victim after a fault of its memory
};

/// One law. The order of calls: on_event comes before on_commit or on_applied of the same step. on_strike
/// comes at the time of the fault, just before or just after its effect (on_disk, when it ends a process).
/// on_look comes for every peer that has a process, several times a second, for the last time when its
/// session has finished or failed. on_calm comes once, on_end last.
class Checker {
 public:
  explicit Checker(std::string name) : name_(std::move(name)) {}

  virtual ~Checker() = default;

  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  virtual void on_commit(const Sighting&) {}

  virtual void on_applied(const Sighting&) {}

  virtual void on_look(const Survivor&) {}

  virtual void on_event(PeerId, const world::Event&) {}  ///< a line of the event log of this peer

  /// A line of the second process under this id. Nothing else is said of that one.
  virtual void on_twin_event(PeerId, const world::Event&) {}

  /// Bytes that this peer's process gave to its links so far, by the site of the receivers; comes before an
  /// event with these numbers.
  virtual void on_traffic(PeerId, const std::map<std::string, std::uint64_t>&) {}

  virtual void on_strike(const Strike&) {}

  /// The process of this peer has ended, or its machine went down: its disk as it is now.
  virtual void on_disk(PeerId, world::Files&) {}

  /// The store that all share, whenever a disk is shown.
  virtual void on_store(world::Files&) {}

  /// Faults are over: all peers are together, and none is stopped.
  virtual void on_calm(Instant) {}

  virtual void on_end(std::span<const Survivor>) {}

  const std::vector<Violation>& violations() const { return violations_; }

 protected:
  void violated(std::string message) { violations_.push_back({name_, std::move(message)}); }

 private:
  std::string name_;
  std::vector<Violation> violations_;
};

/// The samples of the run behind these microbatches of the record's round.
std::vector<train::SampleSpan> samples_of(const wire::Record& record, const RangeSet& microbatches,
                                          const Rules& rules);

bool has_member(const wire::Record& record, PeerId peer);

}  // namespace tw::sim
