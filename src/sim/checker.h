// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "average/geometry.h"
#include "base/digest.h"
#include "base/ids.h"
#include "base/time.h"
#include "codec/codec.h"
#include "sim/faults.h"
#include "train/session.h"
#include "wire/record.h"
#include "world/files.h"

/// The invariants of the design (section 4), each judged from outside while a world runs.
namespace tw {

struct Violation {
  std::string checker;
  std::string message;
};

/// What decides which records are right.
struct Rules {
  std::uint64_t target_batch_size = 0;
  std::uint64_t microbatch = 0;
  Codec codec = Codec::fp32;
  Geometry geometry;

  std::uint64_t microbatches() const { return (target_batch_size + microbatch - 1) / microbatch; }
};

/// A peer's word about a record.
struct Sighting {
  PeerId peer;
  const Record& record;
  Digest digest;          ///< of the record
  Digest parameters{};    ///< applied: after the record's update
  bool restored = false;  ///< applied: by a transfer of the state
};

/// A peer that lives, from outside.
struct Survivor {
  PeerId peer;
  SessionView view;
  Duration idle{};  ///< time it ran without computing, committing or applying anything
  Instant now{};
};

/// A fault has struck.
struct Strike {
  FaultKind kind{};
  std::vector<PeerId> victims;
  Instant at{};
};

class Checker {
 public:
  explicit Checker(std::string name) : name_(std::move(name)) {}

  virtual ~Checker() = default;

  virtual void on_commit(const Sighting&) {}

  virtual void on_applied(const Sighting&) {}

  virtual void on_look(const Survivor&) {}  ///< now and then, for each peer

  virtual void on_event(PeerId, const Event&) {}  ///< a line of the event log of this peer

  virtual void on_strike(const Strike&) {}

  /// The process of this peer has ended, or its machine went down: its disk as it is now.
  virtual void on_disk(PeerId, Files&) {}

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
std::vector<SampleSpan> samples_of(const Record& record, const RangeSet& microbatches,
                                   std::uint64_t microbatch);

bool has_member(const Record& record, PeerId peer);

}  // namespace tw
