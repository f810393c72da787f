// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "base/ids.h"
#include "base/time.h"
#include "codec/codec.h"
#include "swarm/leases/batch_choice.h"
#include "swarm/shares/division.h"
#include "train/learn/optimizer.h"
#include "wire/record.h"

namespace tw::train {

enum class Rounding : std::uint8_t { nearest, stochastic };

/// What is averaged, and what peers do meanwhile (docs/modes.md).
enum class Mode : std::uint8_t {
  sync,       ///< gradients; they wait
  delayed,    ///< gradients; they compute for the next round, so each update is applied one round late
  local,      ///< what each peer changed in a copy of its own; they wait
  streaming,  ///< the same; they train on, and each update is applied one round late
};

constexpr bool overlaps(Mode mode) { return mode == Mode::delayed || mode == Mode::streaming; }

constexpr bool is_local(Mode mode) { return mode == Mode::local || mode == Mode::streaming; }

/// What the mean change of all copies does to the parameters of the run (is_local()).
enum class OuterStep : std::uint8_t {
  mean,      ///< it is added
  nesterov,  ///< one step of SGD with Nesterov momentum
};

/// The defaults of nesterov are those of Douillard et al. 2023 (DiLoCo).
struct OuterOptions {
  OuterStep step = OuterStep::mean;
  double rate = 0.7;      ///< nesterov
  double momentum = 0.9;  ///< nesterov
};

struct ModeOptions {
  Mode kind = Mode::sync;
  OuterOptions outer;  ///< with is_local()
  /// A round averages one of so many parts of the vector, in turn (average/fragments.h); with streaming.
  std::uint64_t fragments = 4;
  Round digest_every = 10;  ///< rounds from one comparison of the parameters to the next

  std::uint64_t fragments_used() const { return kind == Mode::streaming ? fragments : 1; }
};

/// Samples of a round, over all peers.
struct BatchOptions {
  std::optional<std::uint64_t> size = 512;  ///< nothing (auto): the leader chooses it within the bounds
  swarm::BatchBounds bounds{.least = 128, .most = 65536};
};

struct CheckpointOptions {
  std::string folder;  ///< empty: none; in a run file, kNone is none, and empty a usual place
  Round every = 0;     ///< rounds; 0: by time
  /// By time, one is due so long after the last one, or later, so that they take 2 % of the time at most; 0:
  /// never. peer::place_checkpoints() sets it.
  Duration interval{};
  bool is_usual =
      false;  ///< nobody chose the folder: a complete run there does not keep a new one from beginning
  int keep = 2;
  std::string to;    ///< where anchors copy finished ones; empty: nowhere
  bool logs = true;  ///< every peer copies its event log there, too
  /// Folder or bucket where peers find each other; kNone: nowhere; empty: where checkpoints are copied to.
  std::string rendezvous;

  static constexpr const char* kNone = "none";
  static constexpr Duration kUsualInterval = std::chrono::minutes(5);
};

/// What happens when the run reaches its budget.
enum class BudgetAction { warn, drain };

/// The budget of a run. Every peer computes the cost; it does not affect the result.
struct BudgetOptions {
  std::optional<double> usd;  ///< nothing: no limit
  BudgetAction action = BudgetAction::warn;

  bool drains() const { return usd && action == BudgetAction::drain; }
};

/// What a run is, and how it goes: what a run file says (run_fields.cc reads, checks and documents it), and
/// what the program around the engine, or the simulator, says beside it.
struct RunOptions {
  static constexpr std::string_view kOwn = "own";

  // ---- not in run files
  /// Names among the facts of the run (RunFacts). "own": the program's, and only the founder of the run can
  /// make its first parameters. Any other name: each peer makes the same ones.
  std::string model{kOwn}, data{kOwn};
  /// The tensors of the flat vector in order, a line each: "group 0: fc.weight (10, 20) float32", with
  /// further facts between them.
  std::string layout;
  OptimizerOptions optimizer;    ///< where the program has none
  double learning_rate = 1e-3;   ///< the same
  std::uint64_t microbatch = 1;  ///< samples that are computed together, whole or not at all
  double clip_norm = 0;          ///< largest L2 norm of the mean gradient; 0 = none

  // ---- in run files
  BatchOptions batch;
  ModeOptions mode;
  codec::Codec codec = codec::Codec::fp32;
  Rounding rounding = Rounding::nearest;  ///< of contributions in int8; others are rounded to the nearest
  /// The rounding error of a contribution is added to a later one; nothing: if codec is int8 or int4.
  std::optional<bool> error_feedback;
  swarm::SiteUse sites = swarm::SiteUse::automatic;
  /// Work of a peer that is lost after the call is computed again in the same round, not in the next one.
  bool exact_batches = false;
  double norm_cap = 0;  ///< largest L2 norm, per sample, of a contribution; 0 = none
  Round rounds = 100;   ///< with those of a run before (Session::goes_on_from)
  std::uint64_t seed = 1;
  CheckpointOptions checkpoint;
  BudgetOptions budget;
  /// How long a side without a majority pauses before it goes on alone, marked so in its records.
  Duration patience = std::chrono::seconds(20);

  bool has_own_model() const { return model == kOwn; }

  bool overlaps() const { return train::overlaps(mode.kind); }

  /// Whether peers compare the parameters after the update of this round by their own digest; after others
  /// the digest of its record stands for it, so the parameters need not be read.
  bool compares_parameters(const wire::Record& updated) const {
    return updated.last || compares_parameters(updated.round);
  }

  bool compares_parameters(Round updated) const { return updated % mode.digest_every == 0; }

  /// A contribution is what the samples changed in the peer's own copy of the parameters, negated as a
  /// gradient would be, times their number. The optimizer of the run is the outer step.
  bool is_local() const { return train::is_local(mode.kind); }

  bool dithers() const { return codec == codec::Codec::int8 && rounding == Rounding::stochastic; }

  bool feeds_back() const {
    return error_feedback.value_or(codec == codec::Codec::int8 || codec == codec::Codec::int4);
  }

  swarm::TargetBatch target_batch() const {
    const swarm::BatchBounds bounds = in_microbatches(batch.bounds, microbatch);
    return {batch.size.value_or(bounds.least), microbatch, exact_batches, overlaps(),
            batch.size ? std::nullopt : std::optional(bounds)};
  }
};

}  // namespace tw::train
