// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <variant>
#include <vector>

#include "base/text/field_values.h"
#include "base/text/size.h"
#include "train/run/program.h"
#include "train/run/run_names.h"

namespace tw::train {
namespace {

/// Where a value is stored; the alternative says how it is written.
struct ModelPlace {
  std::string* at;
};

struct FilePlace {
  std::string* at;
};

struct FolderPlace {
  std::string* at;
};

/// A folder, or none.
struct ShelfPlace {
  std::string* at;
};

/// A folder that may be a store one day.
struct CopyPlace {
  std::string* at;
};

struct FieldNamesPlace {
  std::string* at;
};

/// Bytes.
struct SizePlace {
  std::uint64_t* at;
};

using Place =
    std::variant<Shuffle*, Crop*, FieldNamesPlace, SizePlace, std::uint64_t*, int*, double*,
                 std::optional<double>*, bool*, std::optional<bool>*, Duration*, DataKind*, RawToken*,
                 OptimizerKind*, ScheduleKind*, codec::Codec*, Rounding*, BufferUse*, average::SiteUse*,
                 BudgetAction*, ModelPlace, FilePlace, FolderPlace, ShelfPlace, CopyPlace>;

}  // namespace

struct RunField : Field<RunOptions, Place> {};

namespace {

constexpr NumberBounds kAtLeastOne{.low = 1};
/// A round of more samples would take days on any machines there are.
constexpr NumberBounds kBatch{.low = 1, .high = 1e9};
/// Samples of one pass are in memory at once.
constexpr NumberBounds kMicrobatch{.low = 1, .high = 1 << 20};
constexpr NumberBounds kShare{.low = 0, .high = 1};
constexpr NumberBounds kBelowOne{.low = 0, .high = 1, .below_high = true};
constexpr NumberBounds kPositive{.low = 0, .above_low = true};

/// Everything a run file can say: reading, checks, suggestions and reference come from this table.
constexpr RunField kFields[] = {
    {"", "model",
     "built-in model; TorchScript file whose `forward(inputs, targets)` returns the mean loss; or own, of a "
     "program with a loop of its own (docs/python.md)",
     [](RunOptions& o) -> Place { return ModelPlace{&o.model}; }},
    {"", "budget_usd",
     "what the run may cost, machines (tw train --usd-per-h) and traffic together; each peer warns at 80 %; "
     "none: no limit",
     [](RunOptions& o) -> Place { return &o.budget.usd; }, kPositive},
    {"", "budget_action",
     "what happens at budget_usd; drain: the round under way is the last one, and all peers end as after the "
     "last of training.rounds",
     [](RunOptions& o) -> Place { return &o.budget.action; }},

    {"data", "kind", "format of the data; may be left out where the other keys tell",
     [](RunOptions& o) -> Place { return &o.data.kind; }},
    {"data", "train_inputs", "idx: file with the training inputs",
     [](RunOptions& o) -> Place { return FilePlace{&o.data.train_inputs}; }},
    {"data", "train_targets", "idx: file with the training targets",
     [](RunOptions& o) -> Place { return FilePlace{&o.data.train_targets}; }},
    {"data", "test_inputs", "idx: file with the evaluation inputs; without it there is no evaluation",
     [](RunOptions& o) -> Place { return FilePlace{&o.data.test_inputs}; }},
    {"data", "test_targets", "idx: file with the evaluation targets",
     [](RunOptions& o) -> Place { return FilePlace{&o.data.test_targets}; }},
    {"data", "text", "text: the file; its bytes are the tokens",
     [](RunOptions& o) -> Place { return FilePlace{&o.data.text}; }},
    {"data", "tokens",
     "tokens: file of nothing but tokens, little-endian; megatron: the .bin or the .idx file",
     [](RunOptions& o) -> Place { return FilePlace{&o.data.tokens}; }},
    {"data", "token_type", "tokens: how the file stores a token",
     [](RunOptions& o) -> Place { return &o.data.token_type; }},
    {"data", "test_tokens",
     "tokens, megatron: file for evaluation; without it the end of data.tokens is kept for it",
     [](RunOptions& o) -> Place { return FilePlace{&o.data.test_tokens}; }},
    {"data",
     "context",
     "text, tokens, megatron: tokens of a sample",
     [](RunOptions& o) -> Place { return &o.data.context; },
     {.low = 1, .high = 65536}},
    {"data", "test_share",
     "text, tokens, megatron: share of the file, at its end, that is kept for evaluation",
     [](RunOptions& o) -> Place { return &o.data.test_share; }, kBelowOne},

    {"data", "index", "shards: index of the training samples (tw data index); docs/data.md",
     [](RunOptions& o) -> Place { return FilePlace{&o.data.shards.index}; }},
    {"data", "test_index", "shards: index of the evaluation samples; without it there is no evaluation",
     [](RunOptions& o) -> Place { return FilePlace{&o.data.shards.test_index}; }},
    {"data", "inputs",
     "shards: the field of a sample that is the model's input; with ; between several, the first that it has",
     [](RunOptions& o) -> Place { return FieldNamesPlace{&o.data.shards.inputs}; }},
    {"data", "targets", "shards: the same for the target",
     [](RunOptions& o) -> Place { return FieldNamesPlace{&o.data.shards.targets}; }},
    {"data",
     "image",
     "shards: pictures become squares of so many pixels a side; 0: they stay as they are",
     [](RunOptions& o) -> Place { return &o.data.shards.image; },
     {.high = 4096}},
    {"data",
     "channels",
     "shards: 1: grey pictures, 3: red, green, blue; 0: as they are",
     [](RunOptions& o) -> Place { return &o.data.shards.channels; },
     {.high = 3}},
    {"data", "crop",
     "shards: the part of a picture that training sees, where data.image is set; random: 8 to 100 % of it, "
     "drawn by the sample's number",
     [](RunOptions& o) -> Place { return &o.data.shards.crop; }},
    {"data", "flip", "shards: every other picture is mirrored in training, drawn by the sample's number",
     [](RunOptions& o) -> Place { return &o.data.shards.flip; }},
    {"data", "shuffle", "shards: what an epoch permutes; samples: each one is a read of its own",
     [](RunOptions& o) -> Place { return &o.data.shards.shuffle; }},
    {"data",
     "block",
     "shards: samples in a row in a block; 0: as many as in training.microbatch",
     [](RunOptions& o) -> Place { return &o.data.shards.block; },
     {.high = 1e9}},
    {"data", "cache", "shards: folder where what came over the network is kept; without it nothing is",
     [](RunOptions& o) -> Place { return FolderPlace{&o.data.shards.cache}; }},
    {"data", "cache_limit", "shards: beyond it what was used longest ago goes",
     [](RunOptions& o) -> Place { return SizePlace{&o.data.shards.cache_limit}; }},
    {"data", "memory", "shards: samples that a peer fetches ahead",
     [](RunOptions& o) -> Place { return SizePlace{&o.data.shards.memory}; }},
    {"data", "skip_broken",
     "shards: samples that cannot be decoded, or whose object the store says is gone, and that a peer goes "
     "on "
     "without; one more goes to another peer",
     [](RunOptions& o) -> Place { return &o.data.shards.skip_broken; }},

    {"training", "target_batch_size",
     "samples of a round, over all peers (fewer where one is lost while gradients are averaged)",
     [](RunOptions& o) -> Place { return &o.target_batch_size; }, kBatch},
    {"training", "microbatch", "samples of one forward and backward pass",
     [](RunOptions& o) -> Place { return &o.microbatch; }, kMicrobatch},
    {"training", "rounds", "updates until the run ends", [](RunOptions& o) -> Place { return &o.rounds; },
     kAtLeastOne},
    {"training", "seed", "decides initial parameters, sample order and dropout",
     [](RunOptions& o) -> Place { return &o.seed; }},
    {"training", "codec", "how gradients cross the wire", [](RunOptions& o) -> Place { return &o.codec; }},
    {"training", "rounding",
     "of gradients in int8; stochastic: by a chance that is the same wherever it is computed",
     [](RunOptions& o) -> Place { return &o.rounding; }},
    {"training", "error_feedback",
     "what rounding takes from a peer's gradient is added to a later one; by default with int8 and int4",
     [](RunOptions& o) -> Place { return &o.error_feedback; }},
    {"training", "buffers",
     "buffers that change while training (BatchNorm); mean: the mean of all passes, weighted by samples; "
     "leader: only the passes of the peer that leads count",
     [](RunOptions& o) -> Place { return &o.buffers; }},
    {"training", "sites",
     "whether peers of one site (tw train --site) are averaged first; auto: where that is faster or sends "
     "less between sites",
     [](RunOptions& o) -> Place { return &o.sites; }},
    {"training", "exact_batches",
     "true: when a peer is lost while gradients are averaged, others compute its part of the batch again in "
     "the same round; false: in the next round, which does not hold up this one",
     [](RunOptions& o) -> Place { return &o.exact_batches; }},
    {"training", "norm_cap",
     "largest L2 norm, per sample, of a peer's gradient in a round; what is beyond it enters no round; 0: no "
     "limit",
     [](RunOptions& o) -> Place { return &o.norm_cap; }},
    {"training", "clip_norm",
     "largest L2 norm of the mean gradient; a longer one is scaled down to it, as by PyTorch's "
     "clip_grad_norm_; "
     "0: no limit",
     [](RunOptions& o) -> Place { return &o.clip_norm; }},
    {"training", "patience",
     "how long a side without a majority of the peers, or a first peer that was started again, waits for "
     "others before it goes on alone",
     [](RunOptions& o) -> Place { return &o.patience; }},

    {"optimizer", "kind", "sgd, adam and adamw are those of PyTorch",
     [](RunOptions& o) -> Place { return &o.optimizer.kind; }},
    {"optimizer", "momentum", "sgd", [](RunOptions& o) -> Place { return &o.optimizer.momentum; }, kBelowOne},
    {"optimizer", "nesterov", "sgd: whether its momentum is Nesterov's",
     [](RunOptions& o) -> Place { return &o.optimizer.nesterov; }},
    {"optimizer", "beta1", "adam, adamw, lamb", [](RunOptions& o) -> Place { return &o.optimizer.beta1; },
     kBelowOne},
    {"optimizer", "beta2", "adam, adamw, lamb", [](RunOptions& o) -> Place { return &o.optimizer.beta2; },
     kBelowOne},
    {"optimizer", "epsilon", "adam, adamw, lamb", [](RunOptions& o) -> Place { return &o.optimizer.epsilon; },
     kPositive},
    {"optimizer", "weight_decay", "decoupled (adamw, lamb) or L2 (sgd, adam)",
     [](RunOptions& o) -> Place { return &o.optimizer.weight_decay; }},

    {"schedule", "kind", "how the learning rate falls after the warm-up",
     [](RunOptions& o) -> Place { return &o.schedule.kind; }},
    {"schedule", "learning_rate", "the peak",
     [](RunOptions& o) -> Place { return &o.schedule.learning_rate; }, kPositive},
    {"schedule", "warmup_rounds", "rounds of linear rise from 0 to the peak",
     [](RunOptions& o) -> Place { return &o.schedule.warmup_rounds; }},
    {"schedule", "total_rounds", "round at which the fall ends; 0: the last round of the run",
     [](RunOptions& o) -> Place { return &o.schedule.total_rounds; }},
    {"schedule", "final_share", "share of the peak that is left at the end",
     [](RunOptions& o) -> Place { return &o.schedule.final_share; }, kShare},

    {"evaluation", "every", "rounds between two evaluations; 0: only at the end of the run",
     [](RunOptions& o) -> Place { return &o.evaluation.every; }},
    {"evaluation", "samples", "evaluation samples that are used; 0: all",
     [](RunOptions& o) -> Place { return &o.evaluation.samples; }},
    {"evaluation",
     "stop_accuracy",
     "the run ends when this share of the answers is right",
     [](RunOptions& o) -> Place { return &o.evaluation.stop_accuracy; },
     {.low = 0, .high = 1, .above_low = true}},

    {"checkpoint", "folder",
     "where checkpoints are written; by default a folder for this run (docs/run_file.md); none: without "
     "them, "
     "the loss of all peers at once is that of the run",
     [](RunOptions& o) -> Place { return ShelfPlace{&o.checkpoint.folder}; }},
    {"checkpoint", "every", "rounds between two checkpoints; 0: by time (docs/run_file.md)",
     [](RunOptions& o) -> Place { return &o.checkpoint.every; }},
    {"checkpoint",
     "keep",
     "checkpoints that are kept",
     [](RunOptions& o) -> Place { return &o.checkpoint.keep; },
     {.low = 1, .high = 1000}},
    {"checkpoint", "to",
     "where anchors (tw train --role anchor) copy finished checkpoints, as many as are kept, and where every "
     "peer looks for one, too",
     [](RunOptions& o) -> Place { return CopyPlace{&o.checkpoint.to}; }},
    {"checkpoint", "logs",
     "with checkpoint.to: every peer copies its event log into the folder logs there, about once a minute",
     [](RunOptions& o) -> Place { return &o.checkpoint.logs; }},
};

constexpr std::string_view kModels[] = {"mnist-cnn", "char-transformer", kOwnModel};

bool is_model(const GivenValue& given) {
  return std::ranges::any_of(kModels, [&](std::string_view model) { return given.is(model); });
}

std::string absolute(const GivenValue& given) {
  return (given.folder / given.words.front()).lexically_normal().string();
}

/// What may stand there, for messages and for the reference.
struct Expectation : ExpectedValue {
  using ExpectedValue::operator();

  std::string operator()(const ModelPlace&) const {
    return fmt::format("{} or a file", fmt::join(kModels, ", "));
  }

  std::string operator()(const FilePlace&) const { return "a file"; }

  std::string operator()(const FolderPlace&) const { return "a folder"; }

  std::string operator()(const ShelfPlace&) const { return "a folder or none"; }

  std::string operator()(const CopyPlace&) const { return "a folder or s3://BUCKET/PREFIX"; }

  std::string operator()(const FieldNamesPlace&) const { return "names of fields such as jpg or jpg;png"; }

  std::string operator()(const SizePlace&) const { return "a size such as 512MiB or 10GB, at most 1 TiB"; }
};

/// The present value as it would be written.
struct Written : WrittenValue {
  using WrittenValue::operator();

  template <class TextPlace>

  requires std::is_class_v<TextPlace> std::string operator()(const TextPlace& place) const {
    return *place.at;
  }

  std::string operator()(const SizePlace& place) const { return size_text(*place.at); }
};

/// Stores a value; returns the complaint.
struct Assignment : ValueAssignment {
  using ValueAssignment::operator();

  std::string operator()(const FolderPlace& place) const {
    if (word().empty()) return complaint();
    *place.at = absolute(given);
    return "";
  }

  std::string operator()(const ShelfPlace& place) const {
    if (word() != CheckpointOptions::kNone) return (*this)(FolderPlace{place.at});
    *place.at = word();
    return "";
  }

  std::string operator()(const CopyPlace& place) const {
    if (word().find("://") == std::string::npos) return (*this)(FolderPlace{place.at});
    if (!word().starts_with("s3://") || word().size() < 8) return complaint();
    *place.at = word();
    return "";
  }

  std::string operator()(const FieldNamesPlace& place) const { return (*this)(place.at); }

  std::string operator()(const SizePlace& place) const { return store(parse_size(word()), place.at); }

  std::string operator()(const FilePlace& place) const {
    if (word().find("://") != std::string::npos)
      return fmt::format("expected a file of this machine, found {}; copy it here first", word());
    const std::string wrong = (*this)(FolderPlace{place.at});
    std::error_code error;
    if (!wrong.empty() || std::filesystem::is_regular_file(*place.at, error)) return wrong;
    return fmt::format("no such file: {}", *place.at);
  }

  std::string operator()(const ModelPlace& place) const {
    if (is_model(given)) return (*this)(place.at);
    const std::string wrong = (*this)(FilePlace{place.at});
    if (wrong.empty() || word().empty()) return wrong;
    return fmt::format("neither a built-in model ({}) nor a file: {}{}", fmt::join(kModels, ", "), *place.at,
                       did_you_mean(word(), kModels));
  }
};

}  // namespace

std::string key_of(const RunField& field) { return tw::key_of(field); }

std::string expectation(const RunField& field) {
  RunOptions defaults;
  return expected_at<Expectation>(field, defaults);
}

std::string assign(const RunField& field, const GivenValue& given, RunOptions& options) {
  return assign_field<Expectation, Assignment>(field, given, options);
}

std::optional<std::string> absolute_path(const RunField& field, const GivenValue& given) {
  RunOptions scratch;
  const Place place = field.place(scratch);
  const bool shelf = std::holds_alternative<ShelfPlace>(place) && !given.is(CheckpointOptions::kNone);
  const bool path =
      shelf || std::holds_alternative<FilePlace>(place) || std::holds_alternative<FolderPlace>(place);
  const bool model = std::holds_alternative<ModelPlace>(place) && !is_model(given);
  if (given.is("") || !(path || model)) return std::nullopt;
  return absolute(given);
}

const RunField* find_run_field(std::string_view key) {
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) return find_field<RunField>(kFields, "", key);
  return find_field<RunField>(kFields, key.substr(0, dot), key.substr(dot + 1));
}

std::string whole_run_key(std::string_view name) {
  if (find_run_field(name) != nullptr || std::ranges::count(kFields, name, &RunField::name) != 1)
    return std::string(name);
  return key_of(*std::ranges::find(kFields, name, &RunField::name));
}

bool is_run_section(std::string_view name) {
  return !name.empty() && std::ranges::find(kFields, name, &RunField::section) != std::end(kFields);
}

std::string unknown_run_key(std::string_view section, std::string_view name) {
  if (section.empty()) return unknown_field<RunField>(kFields, section, name, {"program"});
  return unknown_field<RunField>(kFields, section, name);
}

std::string run_file_reference() {
  const std::string program = program_reference();
  const std::size_t rows = program.find('\n', program.find('\n') + 1) + 1;  // below the head
  return reference_of<Expectation, Written, RunField>(kFields, RunOptions()) + program.substr(rows);
}

}  // namespace tw::train
