// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "base/text/field_values.h"
#include "base/text/text.h"
#include "train/run/program.h"
#include "train/run/run_names.h"

namespace tw::train {
namespace {

// Where a value is stored; the alternative says how it is written.

/// A folder, or none.
struct ShelfPlace {
  std::string* at;
};

/// A folder or a store that takes checkpoints.
struct CopyPlace {
  std::string* at;
};

/// A folder or a store where peers meet, or none.
struct MeetingPlace {
  std::string* at;
};

/// Samples of a round, or auto.
struct BatchPlace {
  std::optional<std::uint64_t>* at;
};

using Place = std::variant<std::uint64_t*, int*, double*, std::optional<double>*, bool*, std::optional<bool>*,
                           Duration*, codec::Codec*, Mode*, OuterStep*, Rounding*, swarm::SiteUse*,
                           BudgetAction*, ShelfPlace, CopyPlace, MeetingPlace, BatchPlace>;

}  // namespace

struct RunField : Field<RunOptions, Place> {};

namespace {

constexpr NumberBounds kAtLeastOne{.low = 1};
/// A round of more samples would take days on any machines there are.
constexpr NumberBounds kBatch{.low = 1, .high = 1e9};
constexpr NumberBounds kPositive{.low = 0, .above_low = true};

/// Everything a run file can say: reading, checks, suggestions and reference come from this table.
constexpr RunField kFields[] = {
    {"", "budget_usd",
     "what the run may cost, machines (tw run --usd-per-h) and traffic together; each peer warns at 80 %; "
     "none: no limit",
     [](RunOptions& o) -> Place { return &o.budget.usd; }, kPositive},
    {"", "budget_action",
     "what happens at budget_usd; drain: the round under way is the last one, and all peers end as after the "
     "last of training.rounds",
     [](RunOptions& o) -> Place { return &o.budget.action; }},
    {"", "rendezvous",
     "where peers leave their addresses, signed, for those that know no living one; by default the folder "
     "peers in checkpoint.to; none: nowhere",
     [](RunOptions& o) -> Place { return MeetingPlace{&o.checkpoint.rendezvous}; }},

    {"training", "target_batch_size",
     "samples of a round, over all peers (fewer where one is lost while gradients are averaged). auto: the "
     "fewest whose averaging is hidden, or costs 5 % where peers wait; chosen anew in each round "
     "(docs/modes.md)",
     [](RunOptions& o) -> Place { return BatchPlace{&o.batch.size}; }, kBatch},
    {"training", "batch_min",
     "target_batch_size auto: samples of a round at least, and those of the first one",
     [](RunOptions& o) -> Place { return &o.batch.bounds.least; }, kBatch},
    {"training", "batch_max", "target_batch_size auto: samples of a round at most",
     [](RunOptions& o) -> Place { return &o.batch.bounds.most; }, kBatch},
    {"training", "rounds", "updates until the run ends", [](RunOptions& o) -> Place { return &o.rounds; },
     kAtLeastOne},
    {"training", "seed", "decides the order of the samples (`run.shard`, tw_samples)",
     [](RunOptions& o) -> Place { return &o.seed; }},
    {"training", "mode",
     "what is averaged, and what peers do meanwhile. sync: gradients; they wait. delayed: gradients; they "
     "compute on, with updates one round late. local: what each peer changed with its own "
     "optimizer; they wait. streaming: the same; they compute on (docs/modes.md)",
     [](RunOptions& o) -> Place { return &o.mode.kind; }},
    {"training", "outer",
     "local and streaming: what the mean change does to the parameters. mean: it is added; nesterov: a step "
     "of SGD with Nesterov momentum",
     [](RunOptions& o) -> Place { return &o.mode.outer.step; }},
    {"training", "outer_rate", "learning rate of nesterov",
     [](RunOptions& o) -> Place { return &o.mode.outer.rate; }, kPositive},
    {"training",
     "outer_momentum",
     "momentum of nesterov",
     [](RunOptions& o) -> Place { return &o.mode.outer.momentum; },
     {.low = 0, .high = 0.999}},
    {"training",
     "fragments",
     "streaming: each round averages one of so many parts of the vector, in turn",
     [](RunOptions& o) -> Place { return &o.mode.fragments; },
     {.low = 1, .high = 64}},
    {"training", "codec", "how gradients cross the wire", [](RunOptions& o) -> Place { return &o.codec; }},
    {"training", "rounding",
     "of gradients in int8; stochastic: by a chance that is the same wherever it is computed",
     [](RunOptions& o) -> Place { return &o.rounding; }},
    {"training", "error_feedback",
     "what rounding takes from a peer's gradient is added to a later one; by default with int8 and int4",
     [](RunOptions& o) -> Place { return &o.error_feedback; }},
    {"training", "sites",
     "whether peers of one site (tw run --site) are averaged first; auto: where that is faster or sends "
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
    {"training",
     "digest_every",
     "rounds between two comparisons of the peers' parameters by their digest; means are compared in each "
     "round. A GPU's parameters cross to the host for it",
     [](RunOptions& o) -> Place { return &o.mode.digest_every; },
     {.low = 1, .high = 1000}},
    {"training", "patience",
     "how long a side without a majority of the peers, or a first peer that was started again, waits for "
     "others before it goes on alone",
     [](RunOptions& o) -> Place { return &o.patience; }},

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
     "where anchors (tw run --role anchor) copy finished checkpoints, as many as are kept, and where every "
     "peer looks for one, too",
     [](RunOptions& o) -> Place { return CopyPlace{&o.checkpoint.to}; }},
    {"checkpoint", "logs",
     "with checkpoint.to: every peer copies its event log into the folder logs there, about once a minute",
     [](RunOptions& o) -> Place { return &o.checkpoint.logs; }},
};

/// "s3:/bucket" and "file:shared", too: nobody means a folder by them.
bool has_scheme(const std::string& word) { return word.find(':') < word.find('/'); }

std::string absolute(const GivenValue& given) {
  return (given.folder / given.words.front()).lexically_normal().string();
}

/// What may stand there, for messages and for the reference.
struct Expectation : ExpectedValue {
  using ExpectedValue::operator();

  std::string operator()(const ShelfPlace&) const { return "a folder or none"; }

  std::string operator()(const CopyPlace&) const {
    return "a folder such as file:/shared, or s3://BUCKET/PREFIX";
  }

  std::string operator()(const MeetingPlace&) const {
    return "a folder such as file:/shared, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or none";
  }

  std::string operator()(const BatchPlace&) const { return whole_number_text(bounds) + " or auto"; }
};

constexpr std::string_view kAuto = "auto";

/// The present value as it would be written.
struct Written : WrittenValue {
  using WrittenValue::operator();

  template <class TextPlace>

  requires std::is_class_v<TextPlace> std::string operator()(const TextPlace& place) const {
    return *place.at;
  }

  std::string operator()(const BatchPlace& place) const {
    return *place.at ? (*this)(&**place.at) : std::string(kAuto);
  }
};

/// Stores a value; returns the complaint.
struct Assignment : ValueAssignment {
  using ValueAssignment::operator();

  std::string operator()(const ShelfPlace& place) const {
    return word() == CheckpointOptions::kNone ? store_word(place.at) : store_folder(place.at);
  }

  std::string operator()(const CopyPlace& place) const {
    if (word() == CheckpointOptions::kNone) return complaint();
    return store_folder_or_bucket(place.at, {"s3://"});
  }

  std::string operator()(const MeetingPlace& place) const {
    if (word() == CheckpointOptions::kNone) return store_word(place.at);
    return store_folder_or_bucket(place.at, {"s3://", "gs://"});
  }

  std::string operator()(const BatchPlace& place) const {
    if (word() == kAuto) {
      place.at->reset();
      return "";
    }
    constexpr std::array<std::string_view, 1> kWords = {kAuto};
    const std::string wrong = (*this)(&place.at->emplace());
    return wrong.empty() ? wrong : wrong + did_you_mean(word(), kWords);
  }

 private:
  std::string store_word(std::string* at) const {
    *at = word();
    return "";
  }

  std::string store_folder_or_bucket(std::string* at, std::initializer_list<std::string_view> stores) const {
    constexpr std::string_view kFile = "file:/";
    if (word().starts_with(kFile)) {
      *at = std::filesystem::path(word().substr(kFile.size() - 1)).lexically_normal().string();
      return "";
    }
    const bool known =
        std::ranges::any_of(stores, [this](auto scheme) { return word().starts_with(scheme); });
    if (!known) return store_folder(at);
    *at = word().substr(0, word().find_last_not_of('/') + 1);  // two slashes in a row are another folder
    return at->size() >= 8 ? "" : complaint();
  }

  std::string store_folder(std::string* at) const {
    if (word().empty() || has_scheme(word())) return complaint();
    if (const std::string_view fault = home_fault(word()); !fault.empty())
      return fmt::format("{}: {}", word(), fault);
    *at = absolute(given);
    return "";
  }
};

/// Sections of earlier versions, whose engine had models of its own.
constexpr std::string_view kOfTheProgram[] = {"model", "data", "optimizer", "schedule", "evaluation"};

}  // namespace

std::string key_of(const RunField& field) { return tw::key_of(field); }

std::string expectation(const RunField& field) {
  RunOptions defaults;
  return expected_at<Expectation>(field, defaults);
}

bool is_flag(const RunField& field) {
  RunOptions scratch;
  const Place place = field.place(scratch);
  return std::holds_alternative<bool*>(place) || std::holds_alternative<std::optional<bool>*>(place);
}

std::string assign(const RunField& field, const GivenValue& given, RunOptions& options) {
  return assign_field<Expectation, Assignment>(field, given, options);
}

std::optional<std::string> absolute_path(const RunField& field, const GivenValue& given) {
  RunOptions scratch;
  const Place place = field.place(scratch);
  const bool takes_folder = std::holds_alternative<ShelfPlace>(place) ||
                            std::holds_alternative<CopyPlace>(place) ||
                            std::holds_alternative<MeetingPlace>(place);
  if (!takes_folder || given.words.size() != 1 || given.is("") || given.is(CheckpointOptions::kNone) ||
      has_scheme(given.words.front()) || !home_fault(given.words.front()).empty())
    return std::nullopt;
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

std::string given_twice(const std::vector<std::pair<std::string, std::string>>& settings) {
  std::map<std::string, std::string> seen;
  for (const auto& [name, value] : settings) {
    const auto [before, is_new] = seen.emplace(whole_run_key(name), value);
    if (!is_new && before->second != value)
      return fmt::format("{} is given twice, {} and {}", before->first, before->second, value);
  }
  return {};
}

bool is_run_section(std::string_view name) {
  return !name.empty() && std::ranges::find(kFields, name, &RunField::section) != std::end(kFields);
}

std::string unknown_run_key(std::string_view section, std::string_view name) {
  if (section.empty() && std::ranges::find(kOfTheProgram, name) != std::end(kOfTheProgram))
    return "no part of a run file: the program brings its model, data and optimizer (docs/run_file.md); "
           "leave it out";
  if (section.empty()) return unknown_field<RunField>(kFields, section, name, {"program"});
  return unknown_field<RunField>(kFields, section, name);
}

std::vector<FieldRow> run_rows(const RunOptions& options) {
  return rows_of<Expectation, Written, RunField>(kFields, options);
}

std::string run_file_reference() {
  const std::string program = program_reference();
  const std::size_t rows = program.find('\n', program.find('\n') + 1) + 1;  // below the head
  return reference_of(run_rows(RunOptions())) + program.substr(rows);
}

}  // namespace tw::train
