// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_file_yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/text/field_table.h"
#include "base/text/size.h"
#include "base/text/text_file.h"
#include "data/shards/shard_dataset.h"
#include "data/shards/shard_index.h"
#include "train/run/run_fields.h"

namespace tw::train {
namespace {

constexpr std::uint64_t kLeastDataMemory = 1 << 20;

struct Given {
  GivenValue value;
  std::string where;  // begins every message about it: "mnist.yaml:12: training.rounds"
};

bool has_test_data(const DataOptions& data) {
  switch (data.kind) {
    case DataKind::idx:
      return !data.test_inputs.empty();
    case DataKind::text:
      return data.test_share > 0;
    case DataKind::tokens:
    case DataKind::megatron:
      return !data.test_tokens.empty() || data.test_share > 0;
    case DataKind::own:
      return false;
    case DataKind::shards:
      return !data.shards.test_index.empty();
  }
  return false;
}

class Reading {
 public:
  explicit Reading(std::string path)
      : path_(std::move(path)),
        folder_(path_.empty() ? std::filesystem::current_path()
                              : std::filesystem::absolute(path_).parent_path()),
        faults_(path_) {}

  void read_file() {
    const auto text = read_text_file(path_, kMostYamlBytes);
    if (!text) return fault(text.error().message);
    const auto tree = parse_yaml(path_, text.value());
    if (!tree) return fault(tree.error().message);
    faults_.for_each_key(tree.value(), faults_.place(tree.value()), "",
                         [&](const Tree& value, const std::string& where) { collect_top(value, where); });
  }

  void override_with(const std::string& key, const std::string& value) {
    const RunField* field = find_run_field(key);
    if (field != nullptr) {
      given_[field] = {given_word(value, std::filesystem::current_path()), key};
      return;
    }
    const std::size_t dot = key.find('.');
    const std::string_view section = dot == std::string::npos ? "" : std::string_view(key).substr(0, dot);
    const bool known = is_run_section(section);
    fault(
        fmt::format("{}: {}", key, unknown_run_key(known ? section : "", known ? key.substr(dot + 1) : key)));
  }

  Result<std::vector<std::pair<std::string, std::string>>> paths() const {
    if (!faults_.empty()) return faults_.error();
    std::vector<std::pair<std::string, std::string>> found;
    for (const auto& [field, given] : given_)
      if (const auto path = absolute_path(*field, given.value)) found.emplace_back(key_of(*field), *path);
    std::ranges::sort(found);
    return found;
  }

  Result<ProgramOptions> program() const {
    if (!faults_.empty()) return faults_.error();
    return program_;
  }

  Result<RunOptions> finish() {
    RunOptions options;
    if (has_program_ && !is_given("model")) options.model = kOwnModel;
    for (const auto& [field, given] : given_) {
      const std::string complaint = assign(*field, given.value, options);
      if (!complaint.empty()) fault(fmt::format("{}: {}", given.where, complaint));
    }
    if (faults_.empty()) settle_data(options);
    if (faults_.empty()) check_together(options);
    if (!faults_.empty()) return faults_.error();
    if (options.schedule.total_rounds == 0) options.schedule.total_rounds = options.rounds;
    return options;
  }

 private:
  void fault(std::string message) { faults_.add(std::move(message)); }

  void collect_top(const Tree& value, const std::string& where) {
    if (value.key == "program") {
      has_program_ = true;
      return tw::train::read_program(value, where, faults_, program_);
    }
    if (const RunField* field = find_run_field(value.key)) return collect_value(*field, value, where);
    if (!is_run_section(value.key)) return faults_.add(where, unknown_run_key("", value.key));
    faults_.for_each_key(value, where, value.key, [&](const Tree& inner, const std::string& here) {
      const RunField* field = find_run_field(value.key + "." + inner.key);
      if (field == nullptr) return faults_.add(here, unknown_run_key(value.key, inner.key));
      collect_value(*field, inner, here);
    });
  }

  void collect_value(const RunField& field, const Tree& value, const std::string& where) {
    if (given_.contains(&field)) return faults_.add(where, "given twice");
    auto given = faults_.given(value, where, expectation(field));
    if (!given) return;
    given->folder = folder_;
    given_[&field] = {*std::move(given), where};
  }

  /// Where the key was given, for messages; the file itself for keys that were not.
  std::string where(std::string_view key) const {
    const auto found = given_.find(find_run_field(key));
    if (found != given_.end()) return found->second.where;
    return path_.empty() ? std::string(key) : fmt::format("{}: {}", path_, key);
  }

  bool is_given(std::string_view key) const { return given_.contains(find_run_field(key)); }

  void settle_data(RunOptions& options) {
    const bool any = is_given("data.kind") || is_given("data.text") || is_given("data.tokens") ||
                     is_given("data.train_inputs") || is_given("data.index");
    if (refuses_second_source()) return;
    if (!any && options.has_own_model()) options.data.kind = DataKind::own;
    if (options.data.kind == DataKind::own) return settle_own(options);
    if (options.has_own_model()) return fault(where("model") + ": own goes with data.kind own alone");
    if (!is_given("data.kind") && is_given("data.text")) options.data.kind = DataKind::text;
    if (!is_given("data.kind") && is_given("data.tokens"))
      options.data.kind = options.data.tokens.ends_with(".idx") ? DataKind::megatron : DataKind::tokens;
    if (!is_given("data.kind") && is_given("data.index")) options.data.kind = DataKind::shards;
    if (options.data.kind == DataKind::shards) return settle_shards(options);
    if (options.data.kind == DataKind::text) return require("data.text", "text data needs it");
    if (options.data.kind == DataKind::tokens) return require("data.tokens", "data of tokens needs it");
    if (options.data.kind == DataKind::megatron) return settle_megatron();
    require("data.train_inputs", "idx data needs it (for text data, give data.text)");
    require("data.train_targets", "idx data needs it");
    if (is_given("data.test_inputs")) require("data.test_targets", "data.test_inputs needs it");
    if (is_given("data.test_targets")) require("data.test_inputs", "data.test_targets needs it");
  }

  /// One of two sets of data would be left out without a word.
  bool refuses_second_source() {
    std::string_view first;
    for (const std::string_view key : {"data.text", "data.tokens", "data.train_inputs", "data.index"}) {
      if (!is_given(key)) continue;
      if (!first.empty()) {
        fault(fmt::format("{}: there is {} as well; give one of them", where(key), first));
        return true;
      }
      first = key;
    }
    return false;
  }

  void settle_megatron() {
    require("data.tokens", "megatron data needs it");
    if (is_given("data.token_type"))
      fault(where("data.token_type") + ": the .idx file says how tokens are stored; leave it out");
  }

  void settle_shards(RunOptions& options) {
    ShardData& data = options.data.shards;
    require("data.index", "shards need it (tw data index writes one)");
    require("data.inputs", "shards need it: the field that is the model's input, such as jpg");
    require("data.targets", "shards need it: the field that is the target, such as cls");
    if (data.channels == 2) fault(where("data.channels") + ": expected 0, 1 or 3, found 2");
    if (data.memory < kLeastDataMemory)
      fault(fmt::format("{}: expected at least {}, found {} bytes", where("data.memory"),
                        size_text(kLeastDataMemory), data.memory));
    if (!faults_.empty()) return;
    for (const std::string_view key : {"data.index", "data.test_index"}) {
      if (is_given(key)) settle_index(data, key);
    }
  }

  void settle_index(ShardData& data, std::string_view key) {
    const bool trains = key == "data.index";
    const auto index = data::read_shard_index(trains ? data.index : data.test_index);
    if (!index) return fault(fmt::format("{}: {}", where(key), index.error().message));
    data.identity += (data.identity.empty() ? "" : "+") + to_string(index.value().identity());
    const std::pair<std::string_view, std::string_view> uses[] = {{"data.inputs", data.inputs},
                                                                  {"data.targets", data.targets}};
    for (const auto& [name, fields] : uses)
      if (const Status has = data::check_fields(index.value(), fields); !has)
        fault(fmt::format("{}: {}: {}", where(name), key, has.error().message));
    const std::uint64_t samples = index.value().size();
    if (trains && data.shuffle == Shuffle::blocks && samples > 1 && data.block >= samples)
      fault(fmt::format(
          "{}: expected fewer than the {} samples of data.index, or nothing is permuted; found {}",
          where("data.block"), samples, data.block));
  }

  /// Its samples are counts.
  void settle_own(RunOptions& options) {
    if (!options.has_own_model()) return fault(where("data.kind") + ": own goes with model own alone");
    if (options.buffers != BufferUse::mean)
      fault(where("training.buffers") +
            ": with model own the program chooses; say buffers= of run.optimizer()");
    if (!is_given("training.microbatch")) options.microbatch = 1;
    if (options.microbatch != 1)
      fault(
          fmt::format("{}: with model own the program chooses how many samples it computes at once; leave "
                      "it out, found {}",
                      where("training.microbatch"), options.microbatch));
  }

  void require(std::string_view key, std::string_view reason) {
    if (!is_given(key)) fault(fmt::format("{}: missing; {}", where(key), reason));
  }

  void check_together(const RunOptions& o) {
    if (o.target_batch_size < o.microbatch) {
      fault(fmt::format("{}: {} is smaller than training.microbatch ({})",
                        where("training.target_batch_size"), o.target_batch_size, o.microbatch));
    }
    const Round end = o.schedule.total_rounds == 0 ? o.rounds : o.schedule.total_rounds;
    if (o.schedule.kind != ScheduleKind::constant && o.schedule.warmup_rounds >= end) {
      fault(fmt::format("{}: {} leaves no round to fall: the schedule ends at round {}",
                        where("schedule.warmup_rounds"), o.schedule.warmup_rounds, end));
    }
    if ((o.evaluation.every > 0 || o.evaluation.stop_accuracy) && !has_test_data(o.data)) {
      const std::string key = where(o.evaluation.every > 0 ? "evaluation.every" : "evaluation.stop_accuracy");
      if (o.data.kind == DataKind::own) return fault(key + ": with model own the program evaluates");
      fault(fmt::format("{}: there is no data to evaluate on; give {}", key,
                        o.data.kind == DataKind::idx      ? "data.test_inputs and data.test_targets"
                        : o.data.kind == DataKind::shards ? "data.test_index"
                                                          : "data.test_share"));
    }
    if (o.evaluation.stop_accuracy && o.evaluation.every == 0) {
      fault(fmt::format("{}: needs evaluation.every, the rounds between two evaluations",
                        where("evaluation.stop_accuracy")));
    }
    if (o.checkpoint.folder != CheckpointOptions::kNone) return;
    for (const std::string_view key : {"checkpoint.to", "checkpoint.every"})
      if (is_given(key))
        fault(fmt::format("{}: checkpoint.folder is none; leave one of the two out", where(key)));
  }

  std::string path_;
  std::filesystem::path folder_;
  std::map<const RunField*, Given> given_;
  ProgramOptions program_;
  bool has_program_ = false;
  Complaints faults_;
};

}  // namespace

Result<RunOptions> read_run_file(const std::string& path,
                                 const std::vector<std::pair<std::string, std::string>>& overrides) {
  Reading reading(path);
  if (!path.empty()) reading.read_file();
  for (const auto& [key, value] : overrides) reading.override_with(key, value);
  return reading.finish();
}

Result<std::vector<std::pair<std::string, std::string>>> absolute_paths(const std::string& path) {
  Reading reading(path);
  reading.read_file();
  return reading.paths();
}

Result<ProgramOptions> read_program(const std::string& path) {
  Reading reading(path);
  reading.read_file();
  return reading.program();
}

Result<std::string> without_program(const std::string& path, const std::string& text) {
  const auto tree = parse_yaml(path, text);
  if (!tree) return tree.error();
  const Tree* program = tree.value().find("program");
  if (program == nullptr) return text;
  const auto last = std::numeric_limits<int>::max();
  int end = last;
  for (const Tree& other : tree.value().items) {
    if (other.key != "program" && other.line == program->line)
      return Error{fmt::format("{}:{}: program: expected lines of its own", path, program->line)};
    if (other.line > program->line) end = std::min(end, other.line);
  }
  std::string rest;
  std::istringstream lines(text);
  int number = 1;
  for (std::string line; std::getline(lines, line); ++number)
    if (number < program->line || number >= end) rest += line + "\n";
  return rest;
}

}  // namespace tw::train
