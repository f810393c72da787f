// SPDX-License-Identifier: Apache-2.0
#include "plan/input/model_profile_yaml.h"

#include <fmt/format.h>

#include "base/result.h"
#include "base/text/number.h"
#include "plan/input/fields_yaml.h"

namespace tw::plan {
namespace {

/// Error factor of a speed if the file gives none.
constexpr double kFactor = 1.05;

/// As a YAML word in double quotes.
std::string quoted(const std::string& text) {
  std::string word = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') word += '\\';
    word += c == '\n' || c == '\t' ? ' ' : c;
  }
  return word + '"';
}

std::map<std::string, MeasuredSpeed> speeds(YamlFields& fields, const std::string& name,
                                            const std::string& file) {
  std::map<std::string, MeasuredSpeed> speeds;
  for (const auto& [gpu, value] : fields.map(name, "GPU: SAMPLES_PER_S")) {
    const auto number = parse_number<double>(value);
    if (!number || !(*number > 0)) fields.complain(name + "." + gpu, "samples per second, above 0");
    const double factor =
        fields.number_or("spread." + gpu, kFactor, {.least = 1, .most = 100});  // of either kind of speed
    speeds[gpu] = {number.value_or(0), factor, file};
  }
  return speeds;
}

std::string map_text(const char* name, const std::map<std::string, MeasuredSpeed>& speeds) {
  if (speeds.empty()) return "";
  std::string text = fmt::format("{}:\n", name);
  for (const auto& [gpu, speed] : speeds)
    text += fmt::format("  {}: {:.6g}\n", quoted(gpu), speed.samples_per_s);
  return text;
}

std::string spread_text(const ModelProfile& model) {
  std::map<std::string, double> factors;
  for (const auto* speeds : {&model.accumulating, &model.alone})
    for (const auto& [gpu, speed] : *speeds) factors[gpu] = speed.factor;
  if (factors.empty()) return "";
  std::string text = "spread:  # factor of the range that holds 80 % of the rounds\n";
  for (const auto& [gpu, factor] : factors) text += fmt::format("  {}: {:.4g}\n", quoted(gpu), factor);
  return text;
}

}  // namespace

Result<ModelProfile> read_profile(const std::string& file, std::string_view text) {
  TW_TRY(auto read, YamlFields::read(file, text));
  YamlFields& fields = read;
  ModelProfile model;
  model.name = fields.word("model");
  model.params_m = fields.number("params_m", {.least = 1e-6});
  model.tensors = fields.count("tensors", {.least = 1, .most = 1e7});
  model.microbatch = fields.number_or("microbatch", model.microbatch, {.least = 1});
  model.data_mb_per_sample = fields.number_or("data_mb_per_sample", 0, {.least = 0});
  model.matchmaking_s = fields.number_or("matchmaking_s", model.matchmaking_s, {.least = 0});
  model.sequence = fields.number_or("sequence", 0, {.least = 1, .most = 1e8});
  model.state_mb = fields.number_or("state_mb", 0, {.least = 0});
  model.memory_mb = fields.number_or("memory_mb", 0, {.least = 0});
  model.gpu_memory_mb = fields.number_or("gpu_memory_mb", 0, {.least = 0});
  model.cpu_cores = fields.number_or("cpu_cores", 0, {.least = 1, .most = 1e5});
  model.file = file;
  model.command = fields.text("command");
  for (const auto& [name, words] : fields.map("hardware", "GPU: WORDS")) model.hardware[name] = words;
  model.accumulating = speeds(fields, "accumulating", file);
  model.alone = speeds(fields, "alone", file);
  TW_TRY(fields.finish());
  return model;
}

std::string write_profile(const ModelProfile& model) {
  std::string text = fmt::format(
      "model: {}\nparams_m: {:.6g}\ntensors: {}\nmicrobatch: {:.6g}\ndata_mb_per_sample: {:.6g}\n",
      quoted(model.name), model.params_m, model.tensors, model.microbatch, model.data_mb_per_sample);
  if (!model.command.empty()) text += fmt::format("command: {}\n", quoted(model.command));
  const auto add = [&](const char* name, double value) {
    if (value > 0) text += fmt::format("{}: {:.6g}\n", name, value);
  };
  add("sequence", model.sequence);
  add("state_mb", model.state_mb);
  add("memory_mb", model.memory_mb);
  add("gpu_memory_mb", model.gpu_memory_mb);
  add("cpu_cores", model.cpu_cores);
  text += map_text("accumulating", model.accumulating) + map_text("alone", model.alone) + spread_text(model);
  if (!model.hardware.empty()) text += "hardware:\n";
  for (const auto& [name, words] : model.hardware)
    text += fmt::format("  {}: {}\n", quoted(name), quoted(words));
  return text;
}

}  // namespace tw::plan
