// SPDX-License-Identifier: Apache-2.0
#include "bind/settings.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/text/option.h"
#include "bind/environment.h"
#include "host/system/environment.h"
#include "peer/spelling.h"
#include "train/run/run_fields.h"
#include "train/run/run_file_yaml.h"

namespace tw::bind {
namespace {

constexpr peer::Spelling kPython = peer::Spelling::python;

bool is_of_the_run(const std::string& key) {
  return key.find('.') != std::string::npos || train::find_run_field(key) != nullptr;
}

Status take_grain(const std::string& text, Settings& settings) {
  const auto grain = parse_count(peer::spelled(kPython, "grain"), text, {.least = 0});
  if (!grain) return grain.error();
  settings.grain = grain.value();
  return Unit{};
}

/// Rounds that the program did in a run before; they count for training.rounds.
Status take_begun(const std::string& text, std::uint64_t& begun) {
  const auto rounds = parse_count(peer::spelled(kPython, "begun"), text, {});
  if (!rounds) return rounds.error();
  begun = rounds.value();
  return Unit{};
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

}  // namespace

Result<Settings> read_settings(std::span<const tw_setting> given, const CallerModel& model) {
  Settings settings;
  std::string file;
  Pairs of_the_run;
  std::uint64_t begun = 0;
  Pairs pairs;
  for (const tw_setting& setting : given) {
    if (setting.key == nullptr || setting.value == nullptr) return Error{"a setting without key or value"};
    pairs.emplace_back(setting.key, setting.value);
  }
  auto all = with_environment(std::move(pairs), host::environment_value);
  if (!all) return all.error();
  settings.warnings = let_rejoin_win(all.value(), host::environment_value);
  for (const auto& [key, value] : all.value()) {
    if (key == "run_file") {
      file = value;
    } else if (key == "grain") {
      if (const Status taken = take_grain(value, settings); !taken) return taken.error();
    } else if (key == "begun") {
      if (const Status taken = take_begun(value, begun); !taken) return taken.error();
    } else if (is_of_the_run(key)) {
      of_the_run.emplace_back(key, value);
    } else if (const Status known = peer::assign(settings.links, key, value, kPython); !known) {
      return known.error();
    }
  }
  auto run = train::read_run_file(file, of_the_run);
  if (!run) return run.error();
  settings.run = std::move(run).value();
  if (settings.run.rounds <= begun)
    return Error{
        fmt::format("training.rounds {}: the program's own state is of round {} already; give more rounds",
                    settings.run.rounds, begun)};
  settings.run.rounds -= begun;
  settings.run.layout = model.layout;
  settings.run.clip_norm = model.clip_norm;
  if (const Status fits = check_codec(settings.run, model); !fits) return fits.error();
  return settings;
}

}  // namespace tw::bind
