// SPDX-License-Identifier: Apache-2.0
#include "bind/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bind/environment.h"
#include "host/system/environment.h"
#include "peer/links.h"
#include "peer/spelling.h"
#include "train/run/run_fields.h"
#include "train/run/run_file_yaml.h"

namespace tw::bind {
namespace {

constexpr peer::Spelling kPython = peer::Spelling::python;

bool is_of_the_run(const std::string& key) {
  return key.find('.') != std::string::npos || train::find_run_field(key) != nullptr;
}

/// "rounds" is training.rounds. A key that takes one value is there once.
Result<Pairs> pairs_of(std::span<const tw_setting> given) {
  Pairs pairs;
  for (const tw_setting& setting : given) {
    if (setting.key == nullptr || setting.value == nullptr) return Error{"a setting without key or value"};
    const std::string key = train::whole_run_key(setting.key);
    const peer::LinkField* link = peer::find_link_field(key);
    const bool takes_several = link != nullptr && peer::takes_several(*link);
    const auto before = std::ranges::find(pairs, key, &Pairs::value_type::first);
    if (!takes_several && before != pairs.end())
      return Error{fmt::format("{} is given twice, {} and {}", key, before->second, setting.value)};
    pairs.emplace_back(key, setting.value);
  }
  return pairs;
}

/// Running statistics may be small differences of large numbers; a block of int8 could turn their sign.
Status check_codec(const train::RunOptions& run, const CallerModel& model) {
  if (!model.averages() || !run.feeds_back()) return Unit{};
  if (run.codec != codec::Codec::int8 && run.codec != codec::Codec::int4) return Unit{};
  return Error{fmt::format(
      "training.codec {}: running statistics are averaged with fp32, fp16 or bf16; choose one of these, or "
      "buffers=\"local\"",
      name_of(run.codec))};
}

/// The mean of the differences from a statistic two updates ago, added to the one of now, swings.
Status check_moving(const train::RunOptions& run, const CallerModel& model) {
  const auto moves = [](const tw_group& group) { return group.kind == TW_MOVING; };
  if (!run.overlaps() || std::ranges::none_of(model.groups, moves)) return Unit{};
  return Error{
      "training.mode delayed: running statistics (BatchNorm) cannot be averaged one update late; choose "
      "buffers=\"local\" in run.optimizer(), or mode sync"};
}

/// Other rules would take the mean of a fragment for that of all values.
Status check_fragments(const train::RunOptions& run, const CallerModel& model) {
  const auto is_by_value = [](const tw_group& group) {
    return group.kind == TW_SGD || group.kind == TW_AVERAGE;
  };
  if (run.mode.fragments_used() == 1 || std::ranges::all_of(model.groups, is_by_value)) return Unit{};
  return Error{
      "training.mode streaming averages a fragment a round: expected groups of TW_SGD and TW_AVERAGE alone; "
      "or set training.fragments to 1"};
}

}  // namespace

Result<Settings> read_settings(std::span<const tw_setting> given) {
  Settings settings;
  Pairs of_the_run;
  peer::ProgramSettings of_the_program;
  TW_TRY(auto pairs, pairs_of(given));
  TW_TRY(auto all, with_environment(std::move(pairs), host::environment_value));
  settings.warnings = let_rejoin_win(all, host::environment_value);
  std::ranges::move(misspelt_variables(host::environment_names(), host::environment_value),
                    std::back_inserter(settings.warnings));
  for (const auto& [key, value] : all) {
    if (const auto taken = of_the_program.take(key, value); !taken) {
      return taken.error();
    } else if (taken.value()) {
      continue;
    } else if (is_of_the_run(key)) {
      of_the_run.emplace_back(key, value);
    } else if (peer::find_link_field(key) == nullptr && peer::replacement_of(key).empty()) {
      return peer::unknown_setting(key);
    } else if (const Status right = peer::assign(settings.links, key, value, kPython); !right) {
      return right.error();
    }
  }
  TW_TRY(auto run, train::read_run_file(of_the_program.run_file, of_the_run));
  settings.run = std::move(run);
  TW_TRY(peer::check_links(settings.links, kPython));
  if (settings.run.rounds <= of_the_program.begun)
    return Error{
        fmt::format("training.rounds {}: the program's own state is of round {} already; give more rounds",
                    settings.run.rounds, of_the_program.begun)};
  settings.begun = of_the_program.begun;
  settings.grain = of_the_program.grain;
  settings.threads = of_the_program.threads;
  settings.gpu = std::move(of_the_program.gpu);
  settings.gpu_uuid = std::move(of_the_program.gpu_uuid);
  return settings;
}

Status adapt(Settings& settings, const CallerModel& model) {
  settings.run.layout = model.layout;
  // Fragments end between tensors, so peers need tensors of the same sizes.
  if (model.layout.empty() && settings.run.mode.fragments_used() > 1)
    settings.run.layout = fmt::format("tensors of {} values", fmt::join(model.tensor_sizes, ", "));
  settings.run.clip_norm = model.clip_norm;
  TW_TRY(check_moving(settings.run, model));
  TW_TRY(check_fragments(settings.run, model));
  return check_codec(settings.run, model);
}

}  // namespace tw::bind
