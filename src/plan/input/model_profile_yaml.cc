// SPDX-License-Identifier: Apache-2.0
#include "plan/input/model_profile_yaml.h"

#include <fmt/format.h>

#include "base/text/number.h"
#include "plan/input/fields_yaml.h"

namespace tw::plan {
namespace {

/// Error factor of a speed if the file gives none.
constexpr double kFactor = 1.05;

std::map<std::string, MeasuredSpeed> speeds(YamlFields& fields, const std::string& name,
                                            const std::string& file) {
  std::map<std::string, MeasuredSpeed> speeds;
  for (const auto& [gpu, value] : fields.map(name)) {
    const auto number = parse_number<double>(value);
    if (!number || !(*number > 0)) fields.complain(name + "." + gpu, "samples per second, above 0");
    speeds[gpu] = {number.value_or(0), kFactor, file};
  }
  return speeds;
}

std::string map_text(const char* name, const std::map<std::string, MeasuredSpeed>& speeds) {
  if (speeds.empty()) return "";
  std::string text = fmt::format("{}:\n", name);
  for (const auto& [gpu, speed] : speeds) text += fmt::format("  \"{}\": {:.6g}\n", gpu, speed.samples_per_s);
  return text;
}

}  // namespace

Result<ModelProfile> read_profile(const std::string& file, std::string_view text) {
  auto read = YamlFields::read(file, text);
  if (!read) return read.error();
  YamlFields& fields = read.value();
  ModelProfile model;
  model.name = fields.word("model");
  model.params_m = fields.number("params_m", {.least = 1e-6});
  model.tensors = static_cast<int>(fields.number("tensors", {.least = 1, .most = 1e7}));
  model.microbatch = fields.number_or("microbatch", model.microbatch, {.least = 1});
  model.data_mb_per_sample = fields.number_or("data_mb_per_sample", 0, {.least = 0});
  model.matchmaking_s = fields.number_or("matchmaking_s", model.matchmaking_s, {.least = 0});
  model.accumulating = speeds(fields, "accumulating", file);
  model.alone = speeds(fields, "alone", file);
  if (const Status done = fields.finish(); !done) return done.error();
  return model;
}

std::string write_profile(const ModelProfile& model) {
  return fmt::format(
             "model: \"{}\"\nparams_m: {:.6g}\ntensors: {}\nmicrobatch: {:.6g}\ndata_mb_per_sample: {:.6g}\n",
             model.name, model.params_m, model.tensors, model.microbatch, model.data_mb_per_sample) +
         map_text("accumulating", model.accumulating) + map_text("alone", model.alone);
}

}  // namespace tw::plan
