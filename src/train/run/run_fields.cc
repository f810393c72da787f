// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <variant>
#include <vector>

#include "base/text/duration.h"
#include "base/text/fields.h"
#include "base/text/number.h"
#include "base/text/size.h"
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

using Place = std::variant<Shuffle*, Crop*, FieldNamesPlace, SizePlace, std::uint64_t*, int*, double*,
                           std::optional<double>*, bool*, std::optional<bool>*, Duration*, DataKind*,
                           RawToken*, OptimizerKind*, ScheduleKind*, codec::Codec*, Rounding*,
                           average::SiteUse*, BudgetAction*, ModelPlace, FilePlace, FolderPlace, CopyPlace>;

}  // namespace

struct RunField {
  std::string_view section;  // empty: at the top
  std::string_view name;
  std::string_view meaning;
  Place (*place)(RunOptions&);
  NumberBounds bounds = {};

  std::string key() const {
    return section.empty() ? std::string(name) : fmt::format("{}.{}", section, name);
  }
};

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
    {"model", "init",
     "safetensors file with the parameters to begin with, by their names; without it they come from the "
     "seed, "
     "or from the TorchScript file",
     [](RunOptions& o) -> Place { return FilePlace{&o.init}; }},
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

    {"checkpoint", "folder", "where checkpoints are written; without it there are none",
     [](RunOptions& o) -> Place { return FolderPlace{&o.checkpoint.folder}; }},
    {"checkpoint", "every", "rounds between two checkpoints",
     [](RunOptions& o) -> Place { return &o.checkpoint.every; }},
    {"checkpoint",
     "keep",
     "checkpoints that are kept",
     [](RunOptions& o) -> Place { return &o.checkpoint.keep; },
     {.low = 1, .high = 1000}},
    {"checkpoint", "to",
     "where anchors (tw train --role anchor) copy finished checkpoints, as many as are kept, and where every "
     "peer whose own folder has none looks for one",
     [](RunOptions& o) -> Place { return CopyPlace{&o.checkpoint.to}; }},
};

constexpr std::string_view kModels[] = {"mnist-cnn", "char-transformer", kOwnModel};

/// What may stand there, for messages and for the reference.
struct Expectation {
  const NumberBounds& bounds;

  std::string operator()(const std::uint64_t*) const { return whole_number_text(bounds); }

  std::string operator()(const int*) const { return whole_number_text(bounds); }

  std::string operator()(const double*) const { return number_text(bounds); }

  std::string operator()(const std::optional<double>*) const { return number_text(bounds); }

  std::string operator()(const bool*) const { return "true or false"; }

  std::string operator()(const std::optional<bool>*) const { return "true or false"; }

  std::string operator()(const Duration*) const { return std::string(kDurationWords); }

  std::string operator()(const ModelPlace&) const {
    return fmt::format("{} or a file", fmt::join(kModels, ", "));
  }

  std::string operator()(const FilePlace&) const { return "a file"; }

  std::string operator()(const FolderPlace&) const { return "a folder"; }

  std::string operator()(const CopyPlace&) const { return "a folder or s3://BUCKET/PREFIX"; }

  std::string operator()(const FieldNamesPlace&) const { return "names of fields such as jpg or jpg;png"; }

  std::string operator()(const SizePlace&) const { return "a size such as 512MiB or 10GB, at most 1 TiB"; }

  template <class Enum>
  std::string operator()(const Enum* at) const {
    return fmt::format("{}", fmt::join(names_of(*at), " or "));
  }
};

/// The present value as it would be written.
struct Written {
  std::string operator()(const std::uint64_t* at) const { return fmt::to_string(*at); }

  std::string operator()(const int* at) const { return fmt::to_string(*at); }

  std::string operator()(const double* at) const { return fmt::to_string(*at); }

  std::string operator()(const std::optional<double>* at) const { return *at ? fmt::to_string(**at) : ""; }

  std::string operator()(const bool* at) const { return fmt::to_string(*at); }

  std::string operator()(const std::optional<bool>* at) const { return *at ? fmt::to_string(**at) : ""; }

  std::string operator()(const Duration* at) const { return fmt::format("{}s", to_seconds(*at)); }

  std::string operator()(const ModelPlace& place) const { return *place.at; }

  std::string operator()(const FilePlace& place) const { return *place.at; }

  std::string operator()(const FolderPlace& place) const { return *place.at; }

  std::string operator()(const CopyPlace& place) const { return *place.at; }

  std::string operator()(const FieldNamesPlace& place) const { return *place.at; }

  std::string operator()(const SizePlace& place) const { return size_text(*place.at); }

  template <class Enum>
  std::string operator()(const Enum* at) const {
    return std::string(names_of(*at)[static_cast<std::size_t>(*at)]);
  }
};

/// Stores a value; returns the complaint.
struct Assignment {
  const RunField& field;
  const GivenValue& given;

  std::string operator()(std::uint64_t* at) const {
    return store(number_in<std::uint64_t>(text(), bounds()), at);
  }

  std::string operator()(int* at) const { return store(number_in<int>(text(), bounds()), at); }

  std::string operator()(double* at) const { return store(number_in<double>(text(), bounds()), at); }

  std::string operator()(std::optional<double>* at) const {
    return store(number_in<double>(text(), bounds()), at);
  }

  std::string operator()(bool* at) const { return store(truth_in(text()), at); }

  std::string operator()(std::optional<bool>* at) const { return store(truth_in(text()), at); }

  std::string operator()(Duration* at) const { return store(parse_duration(text()), at); }

  template <class Enum>
  std::string operator()(Enum* at) const {
    const Names names = names_of(*at);
    const auto found = std::find(names.begin(), names.end(), given.text);
    if (found == names.end()) return unexpected() + did_you_mean(given.text, names);
    *at = static_cast<Enum>(found - names.begin());
    return "";
  }

  std::string operator()(const FolderPlace& place) const {
    if (given.text.empty()) return unexpected();
    *place.at = absolute();
    return "";
  }

  std::string operator()(const CopyPlace& place) const {
    if (given.text.find("://") == std::string::npos) return (*this)(FolderPlace{place.at});
    if (!given.text.starts_with("s3://") || given.text.size() < 8) return unexpected();
    *place.at = given.text;
    return "";
  }

  std::string operator()(const FieldNamesPlace& place) const {
    *place.at = given.text;
    return given.text.empty() ? unexpected() : "";
  }

  std::string operator()(const SizePlace& place) const { return store(parse_size(text()), place.at); }

  std::string operator()(const FilePlace& place) const {
    if (given.text.empty()) return unexpected();
    if (given.text.find("://") != std::string::npos)
      return fmt::format("expected a file of this machine, found {}; copy it here first", given.text);
    *place.at = absolute();
    std::error_code error;
    return std::filesystem::is_regular_file(*place.at, error) ? ""
                                                              : fmt::format("no such file: {}", *place.at);
  }

  std::string operator()(const ModelPlace& place) const {
    if (std::find(std::begin(kModels), std::end(kModels), given.text) != std::end(kModels)) {
      *place.at = given.text;
      return "";
    }
    const std::string complaint = (*this)(FilePlace{place.at});
    if (complaint.empty() || given.text.empty()) return complaint;
    return fmt::format("neither a built-in model ({}) nor a file: {}{}", fmt::join(kModels, ", "), *place.at,
                       did_you_mean(given.text, kModels));
  }

 private:
  const std::string& text() const { return given.text; }

  const NumberBounds& bounds() const { return field.bounds; }

  template <class Value, class Place>
  std::string store(const std::optional<Value>& value, Place* at) const {
    if (value) *at = *value;
    return value ? "" : unexpected();
  }

  std::string unexpected() const { return tw::unexpected(expectation(field), given.text); }

  std::string absolute() const { return (given.folder / given.text).lexically_normal().string(); }
};

}  // namespace

std::string expectation(const RunField& field) {
  RunOptions defaults;
  return std::visit(Expectation{field.bounds}, field.place(defaults));
}

std::string assign(const RunField& field, const GivenValue& given, RunOptions& options) {
  return std::visit(Assignment{field, given}, field.place(options));
}

std::optional<std::string> absolute_path(const RunField& field, const GivenValue& given) {
  RunOptions scratch;
  const Place place = field.place(scratch);
  const bool path = std::holds_alternative<FilePlace>(place) || std::holds_alternative<FolderPlace>(place);
  const bool model = std::holds_alternative<ModelPlace>(place) &&
                     std::find(std::begin(kModels), std::end(kModels), given.text) == std::end(kModels);
  if (given.text.empty() || !(path || model)) return std::nullopt;
  return (given.folder / given.text).lexically_normal().string();
}

const RunField* find_run_field(std::string_view key) {
  const auto found =
      std::find_if(std::begin(kFields), std::end(kFields), [&](const RunField& f) { return f.key() == key; });
  return found == std::end(kFields) ? nullptr : &*found;
}

std::string key_of(const RunField& field) { return field.key(); }

bool is_run_section(std::string_view name) {
  return std::any_of(std::begin(kFields), std::end(kFields),
                     [&](const RunField& f) { return !f.section.empty() && f.section == name; });
}

std::string unknown_run_key(std::string_view section, std::string_view name) {
  std::vector<KnownKey> known;
  for (const RunField& field : kFields) {
    const bool here = field.section == section;
    if (section.empty() && !here) known.push_back({std::string(field.section), std::string(field.section)});
    known.push_back({std::string(field.name), here ? std::string(field.name) : field.key(), here});
  }
  return unknown_key(name, known);
}

std::string run_file_reference() {
  std::vector<FieldRow> rows;
  RunOptions defaults;
  for (const RunField& field : kFields)
    rows.push_back(
        {field.key(), expectation(field), std::visit(Written{}, field.place(defaults)), field.meaning});
  return reference_of(rows);
}

}  // namespace tw::train
