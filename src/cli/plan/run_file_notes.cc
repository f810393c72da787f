// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/run_file_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/text/quantity.h"
#include "base/text/text_file.h"
#include "base/text/tree_yaml.h"
#include "cli/arguments/arguments.h"
#include "train/run/run_file_yaml.h"

namespace tw::cli {
namespace {

constexpr std::string_view kBatchKey = "target_batch_size";

/// The value of training.KEY that the plan sets; empty: none.
std::string planned_value(const plan::Job& job, const std::string& key) {
  const std::string begin = fmt::format("training.{}=", key);
  for (const std::string& setting : settings_of(job))
    if (setting.starts_with(begin)) return setting.substr(begin.size());
  return "";
}

/// Empty: the plan counts on what the run file says, or the key is none of a plan's.
std::string override_note(const std::string& file, const Tree& said, const plan::Job& planned) {
  const std::string ours = planned_value(planned, said.key);
  if (ours.empty() || said.word == ours) return "";
  return fmt::format("{}: {} {} gives way to {} of the plan{}", file, said.key, said.word, ours,
                     said.key == kBatchKey ? "; the learning rate belongs to one of the two" : "");
}

/// Empty: the rounds are the samples of the job, but for a part of a round or 1 %.
std::string rounds_note(const std::string& file, std::uint64_t rounds, const plan::Job& planned) {
  const double batch = planned.target_batch_size, trained = static_cast<double>(rounds) * batch;
  if (std::abs(trained - planned.samples) <= std::max(batch, 0.01 * planned.samples)) return "";
  const auto whole = [](double count) { return grouped(static_cast<std::uint64_t>(std::ceil(count))); };
  return fmt::format("{}: rounds {} are {} {} {} samples; rounds {} would fit", file, grouped(rounds),
                     whole(trained), trained < planned.samples ? "of" : "and not", whole(planned.samples),
                     whole(planned.samples / batch));
}

}  // namespace

Result<std::vector<std::string>> run_file_notes(const plan::Job& planned) {
  std::vector<std::string> notes;
  if (planned.run.empty()) return notes;
  std::vector<std::pair<std::string, std::string>> overrides;
  for (const std::string& setting : settings_of(planned)) {
    TW_TRY(auto one, parse_setting(setting));
    overrides.push_back(std::move(one));
  }
  TW_TRY(const auto run, train::read_run_file(planned.run, overrides));
  TW_TRY(const auto text, read_text_file(planned.run, kMostYamlBytes));
  TW_TRY(const auto tree, parse_yaml(planned.run, text));
  const std::string file = std::filesystem::path(planned.run).filename().string();
  if (const Tree* training = tree.find("training"))
    for (const Tree& said : training->items) notes.push_back(override_note(file, said, planned));
  notes.push_back(rounds_note(file, run.rounds, planned));
  std::erase(notes, "");
  return notes;
}

}  // namespace tw::cli
