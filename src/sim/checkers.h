// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
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
#include "sim/ledger.h"
#include "train/session.h"
#include "wire/messages.h"
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

/// I1: the same round leaves the same parameters on all peers.
class SameParameters final : public Checker {
 public:
  explicit SameParameters(const Ledger& ledger) : Checker("I1"), ledger_(ledger) {}

  void on_applied(const Sighting& sighting) override;

 private:
  struct First {
    PeerId peer;
    Digest record, parameters;
  };

  const Ledger& ledger_;
  std::map<Round, std::vector<First>> firsts_;  ///< one for each record of the round
};

/// I2: a round is applied by all survivors or by none, and only once decided.
class AllOrNone final : public Checker {
 public:
  explicit AllOrNone(const Ledger& ledger) : Checker("I2"), ledger_(ledger) {}

  void on_commit(const Sighting& sighting) override;
  void on_applied(const Sighting& sighting) override;
  void on_end(std::span<const Survivor> survivors) override;

 private:
  const Ledger& ledger_;
  std::set<Digest> committed_;
  std::map<PeerId, Digest> heads_;
};

/// I3: the contributions of a round are disjoint and add up to exactly its samples.
class ExactSamples final : public Checker {
 public:
  explicit ExactSamples(const Rules& rules) : Checker("I3"), rules_(rules) {}

  void on_commit(const Sighting& sighting) override;

 private:
  Rules rules_;
  std::set<Digest> seen_;
};

/// I4: the mean is the reference mean over the recorded contributors, bit for bit (gradients of
/// SyntheticTrainer).
class ExactMean final : public Checker {
 public:
  explicit ExactMean(const Rules& rules) : Checker("I4"), rules_(rules) {}

  void on_commit(const Sighting& sighting) override;

 private:
  Rules rules_;
  std::set<Digest> seen_;
};

/// I6: who contributes to a round held the state with which the round began.
class KnownState final : public Checker {
 public:
  KnownState() : Checker("I6") {}

  void on_commit(const Sighting& sighting) override;
  void on_applied(const Sighting& sighting) override;

 private:
  std::map<PeerId, std::set<Digest>> held_;
};

/// I8: one history, but for branches that are marked as decided without a majority.
class OneHistory final : public Checker {
 public:
  explicit OneHistory(const Ledger& ledger) : Checker("I8"), ledger_(ledger) {}

  void on_commit(const Sighting& sighting) override;

 private:
  const Ledger& ledger_;
  std::map<Round, std::set<Digest>> records_;
};

/// L1: with faults over and a majority connected the run comes to its end (the world ends after the time it
/// may take). Who was no member any more when the others came to the end is left behind rightly: nobody is
/// there to answer it.
class RunEnds final : public Checker {
 public:
  explicit RunEnds(const Ledger& ledger) : Checker("L1"), ledger_(ledger) {}

  void on_end(std::span<const Survivor> survivors) override;

 private:
  const Ledger& ledger_;
};

/// No session gives up, unless it came too late: the run is over, and it is no member.
class NobodyFails final : public Checker {
 public:
  explicit NobodyFails(const Ledger& ledger) : Checker("failure"), ledger_(ledger) {}

  void on_look(const Survivor& survivor) override;

 private:
  const Ledger& ledger_;
};

/// L3: who waits for more than 5 s says for whom.
class WaitsAreNamed final : public Checker {
 public:
  WaitsAreNamed() : Checker("L3") {}

  void on_look(const Survivor& survivor) override;

 private:
  std::set<PeerId> told_;
};

/// All of the above; the ledger is filled by the caller and outlives them.
std::vector<std::unique_ptr<Checker>> all_checkers(const Rules& rules, const Ledger& ledger);

/// The samples of the run behind these microbatches of the record's round.
std::vector<SampleSpan> samples_of(const Record& record, const RangeSet& microbatches,
                                   std::uint64_t microbatch);

}  // namespace tw
