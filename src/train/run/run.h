// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "average/reduction/division.h"
#include "base/digest.h"
#include "base/ids.h"
#include "base/time.h"
#include "codec/codec.h"
#include "train/learn/optimizer.h"
#include "train/learn/schedule.h"

namespace tw::train {

enum class DataKind : std::uint8_t { idx, text, tokens, megatron, own, shards };

/// How a raw file stores a token.
enum class RawToken : std::uint8_t { uint16, uint32 };

/// What an epoch permutes.
enum class Shuffle : std::uint8_t { blocks, samples };

/// The part of a picture that training uses; evaluation uses the middle.
enum class Crop : std::uint8_t { middle, random };

enum class Rounding : std::uint8_t { nearest, stochastic };

/// Whose passes change the buffers of a model, such as the statistics of BatchNorm.
enum class BufferUse : std::uint8_t { mean, leader };

/// Samples in tar files (docs/data.md).
struct ShardData {
  std::string index, test_index;  ///< files of tw data index
  std::string inputs, targets;    ///< fields; with ';' between, the first that a sample has
  std::uint64_t image = 0;        ///< pixels of both sides of pictures; 0: as they are
  std::uint64_t channels = 0;     ///< of pictures; 0: as they are
  Crop crop = Crop::middle;
  bool flip = false;
  Shuffle shuffle = Shuffle::blocks;
  std::uint64_t block = 0;                  ///< samples in a row; 0: those of a microbatch
  std::string cache;                        ///< folder; empty: none
  std::uint64_t cache_limit = 10ULL << 30;  ///< bytes
  std::uint64_t memory = 256ULL << 20;      ///< bytes of samples that are fetched ahead
  std::uint64_t skip_broken = 0;            ///< broken samples that a peer skips
  std::string identity;                     ///< ShardIndex::identity of both; not in run files
};

/// Paths are absolute once read from a run file (there relative to the file).
struct DataOptions {
  DataKind kind = DataKind::idx;
  std::string train_inputs, train_targets;  ///< idx: tensor files, first dimension = samples
  std::string test_inputs, test_targets;    ///< idx, optional: without them there is no evaluation
  std::string text;                         ///< text: one file, bytes are the tokens
  std::string tokens;                       ///< tokens: a raw file; megatron: its .bin or .idx file
  std::string test_tokens;                  ///< the same for evaluation; empty: test_share of the other
  RawToken token_type = RawToken::uint16;   ///< tokens
  std::uint64_t context = 64;               ///< text, tokens, megatron: tokens a sample
  double test_share = 0.05;                 ///< the same: the tail of the file that is kept for evaluation
  ShardData shards{};
};

struct EvaluationOptions {
  Round every = 0;                      ///< rounds; 0 = never but at the end
  std::uint64_t samples = 0;            ///< of the test data; 0 = all
  std::optional<double> stop_accuracy;  ///< the run ends when it is reached
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

  static constexpr const char* kNone = "none";
  static constexpr Duration kUsualInterval = std::chrono::minutes(5);
};

/// What happens when the run reaches its budget.
enum class BudgetAction { warn, drain };

/// The budget of a run. Every peer computes the cost; it does not affect the result.
struct BudgetOptions {
  std::optional<double> usd;  ///< nothing: no limit
  BudgetAction action = BudgetAction::warn;
};

/// RunOptions::model of a program with its own model: only the program can make its parameters.
inline constexpr std::string_view kOwnModel = "own";

/// Everything a run file says. One field table (run_file_yaml.cc) reads, checks and documents it.
struct RunOptions {
  /// mnist-cnn, char-transformer, own, or the path of a TorchScript file.
  std::string model = "mnist-cnn";
  /// The tensors of the flat vector in order, a line each: "group 0: fc.weight (10, 20) float32", with
  /// further facts between them where the model is the program's own. "led: samples () float32" is no tensor
  /// of the model (train/torch_buffers.h). Not in run files.
  std::string layout;
  /// Identifies the files that decide the result, a line each (Trainer::sources). Not in run files.
  std::string sources;
  DataOptions data;
  std::uint64_t target_batch_size = 512;  ///< samples of a round, over all peers
  std::uint64_t microbatch = 32;          ///< samples of one forward and backward pass
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  codec::Codec codec = codec::Codec::fp32;
  Rounding rounding = Rounding::nearest;  ///< of contributions in int8; others are rounded to the nearest
  /// The rounding error of a contribution is added to a later one; nothing: if codec is int8 or int4.
  std::optional<bool> error_feedback;
  BufferUse buffers = BufferUse::mean;
  average::SiteUse sites = average::SiteUse::automatic;
  /// Work of a peer that is lost after the call is computed again in the same round, not in the next one.
  bool exact_batches = false;
  double norm_cap = 0;   ///< largest L2 norm, per sample, of a contribution; 0 = none
  double clip_norm = 0;  ///< largest L2 norm of the mean gradient; 0 = none
  Round rounds = 100;
  std::uint64_t seed = 1;
  EvaluationOptions evaluation;
  CheckpointOptions checkpoint;
  BudgetOptions budget;
  /// How long a side without a majority pauses before it goes on alone, marked so in its records.
  Duration patience = std::chrono::seconds(20);

  bool has_own_model() const { return model == kOwnModel; }

  bool dithers() const { return codec == codec::Codec::int8 && rounding == Rounding::stochastic; }

  bool feeds_back() const {
    return error_feedback.value_or(codec == codec::Codec::int8 || codec == codec::Codec::int4);
  }

  std::uint64_t microbatches() const { return (target_batch_size + microbatch - 1) / microbatch; }
};

}  // namespace tw::train
