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

#include "base/result.h"
#include "base/text/field_table.h"
#include "base/text/text_file.h"
#include "train/run/run_fields.h"
#include "train/run/run_names.h"

namespace tw::train {
namespace {

struct Given {
  GivenValue value;
  std::string where;  // begins every message about it: "mnist.yaml:12: training.rounds"
};

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

  Result<RunOptions> values() {
    RunOptions options;
    for (const auto& [field, given] : given_) {
      const std::string complaint = assign(*field, given.value, options);
      if (!complaint.empty()) fault(fmt::format("{}: {}", given.where, complaint));
    }
    if (!faults_.empty()) return faults_.error();
    return options;
  }

  Result<RunOptions> finish() {
    TW_TRY(auto options, values());
    check_together(options);
    if (!faults_.empty()) return faults_.error();
    return options;
  }

 private:
  void fault(std::string message) { faults_.add(std::move(message)); }

  void collect_top(const Tree& value, const std::string& where) {
    if (value.key == "program") {
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

  void check_together(const RunOptions& o) {
    if (o.overlaps() && o.exact_batches)
      fault(fmt::format(
          "{}: training.mode is {}: what is lost while a round is averaged goes to a later round, "
          "since others compute for the next one already; leave one of the two out",
          where("training.exact_batches"), name_of(o.mode.kind)));
    check_mode(o);
    check_batch(o);
    check_rounding(o);
    if (o.budget.action == BudgetAction::drain && !o.budget.usd)
      fault(
          fmt::format("{}: no budget_usd is given; give one, or leave the key out", where("budget_action")));
    if (o.checkpoint.folder != CheckpointOptions::kNone) return;
    for (const std::string_view key : {"checkpoint.to", "checkpoint.every"})
      if (is_given(key))
        fault(fmt::format("{}: checkpoint.folder is none; leave one of the two out", where(key)));
  }

  void check_batch(const RunOptions& o) {
    for (const std::string_view key : {"training.batch_min", "training.batch_max"})
      if (is_given(key) && o.batch.size)
        fault(fmt::format("{}: training.target_batch_size is {}; expected auto, or leave the key out",
                          where(key), *o.batch.size));
    if (o.batch.size) return;
    if (o.exact_batches)
      fault(
          fmt::format("{}: training.target_batch_size is auto: batches follow what is measured, so no other "
                      "run computes the same; leave one of the two out",
                      where("training.exact_batches")));
    const auto [least, most] = o.batch.bounds;
    if (least > most)
      fault(fmt::format("{}: expected training.batch_max, which is {}, at most; found {}",
                        where("training.batch_min"), most, least));
  }

  /// Keys that the mode makes no use of.
  void check_mode(const RunOptions& o) {
    const auto unused = [&](std::string_view key, bool used, std::string_view users) {
      if (is_given(key) && !used)
        fault(fmt::format("{}: training.mode is {}; expected {}, or leave the key out", where(key),
                          name_of(o.mode.kind), users));
    };
    for (const std::string_view key : {"training.outer", "training.outer_rate", "training.outer_momentum"})
      unused(key, o.is_local(), "local or streaming");
    unused("training.fragments", o.mode.kind == Mode::streaming, "streaming");
  }

  /// Wishes that the codec makes no use of; those for its usual rounding hold with any.
  void check_rounding(const RunOptions& o) {
    const auto unused = [&](std::string_view key, std::string_view users) {
      fault(fmt::format("{}: training.codec is {}; expected {}, or leave the key out", where(key),
                        name_of(o.codec), users));
    };
    if (o.rounding == Rounding::stochastic && !o.dithers()) unused("training.rounding", "int8");
    if (o.error_feedback == true && o.codec == codec::Codec::fp32)
      unused("training.error_feedback", "a codec that rounds");
  }

  std::string path_;
  std::filesystem::path folder_;
  std::map<const RunField*, Given> given_;
  ProgramOptions program_;
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

Status check_run_file(const std::string& path) {
  Reading reading(path);
  reading.read_file();
  TW_TRY(reading.values());
  return Unit{};
}

Result<std::vector<std::pair<std::string, std::string>>> absolute_paths(
    const std::string& path, const std::vector<std::pair<std::string, std::string>>& overrides) {
  Reading reading(path);
  reading.read_file();
  for (const auto& [key, value] : overrides) reading.override_with(key, value);
  return reading.paths();
}

Result<ProgramOptions> read_program(const std::string& path) {
  Reading reading(path);
  reading.read_file();
  return reading.program();
}

Result<std::string> without_program(const std::string& path, const std::string& text) {
  TW_TRY(const auto tree, parse_yaml(path, text));
  const Tree* program = tree.find("program");
  if (program == nullptr) return text;
  const auto last = std::numeric_limits<int>::max();
  int end = last;
  for (const Tree& other : tree.items) {
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
