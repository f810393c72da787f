// SPDX-License-Identifier: Apache-2.0
#include "plan/input/model_profile_yaml.h"

#include <fmt/format.h>

#include "base/result.h"
#include "base/text/fields.h"
#include "plan/input/fields_yaml.h"

namespace tw::plan {
namespace {

/// Error factor of a speed if the file gives none.
constexpr double kFactor = 1.05;

constexpr CsvRange kMegabytes{.least = 0, .most = 1e12};

/// As a YAML word in double quotes.
std::string quoted(const std::string& text) {
  std::string word = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') word += '\\';
    word += c == '\n' || c == '\t' ? ' ' : c;
  }
  return word + '"';
}

using Factors = std::map<std::string, double>;

std::map<std::string, MeasuredSpeed> speeds(YamlFields& fields, const std::string& name,
                                            const Factors& factors, const std::string& file) {
  constexpr NumberBounds kSpeed{.high = 1e12, .above_low = true};
  std::map<std::string, MeasuredSpeed> speeds;
  for (const GpuField& one : fields.gpu_map(name, "GPU: SAMPLES_PER_S")) {
    const auto number = number_in<double>(one.value, kSpeed);
    if (!number) fields.complain(one.name, "samples per second, above 0 and up to 1e12");
    const auto factor = factors.find(one.gpu);
    speeds[one.gpu] = {number.value_or(0), factor == factors.end() ? kFactor : factor->second, file};
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
  model.params_m = fields.number("params_m", {.least = 1e-6, .most = 1e7});
  model.tensors = fields.count("tensors", {.least = 1, .most = 1e7});
  model.microbatch = fields.number_or("microbatch", model.microbatch, {.least = 1, .most = 1e9});
  model.data_mb_per_sample = fields.number_or("data_mb_per_sample", 0, {.least = 0, .most = 1e6});
  model.matchmaking_s = fields.number_or("matchmaking_s", model.matchmaking_s, {.least = 0, .most = 1e6});
  model.sequence = fields.number_or("sequence", 0, {.least = 1, .most = 1e8});
  model.state_mb = fields.number_or("state_mb", 0, kMegabytes);
  model.memory_mb = fields.number_or("memory_mb", 0, kMegabytes);
  model.gpu_memory_mb = fields.number_or("gpu_memory_mb", 0, kMegabytes);
  model.cpu_cores = fields.number_or("cpu_cores", 0, {.least = 1, .most = 1e5});
  model.file = file;
  model.command = fields.text("command");
  for (const GpuField& one : fields.gpu_map("hardware", "GPU: WORDS")) model.hardware[one.gpu] = one.value;
  const std::vector<GpuField> spread = fields.gpu_map("spread", "GPU: FACTOR");
  Factors factors;
  for (const GpuField& one : spread) factors[one.gpu] = fields.number(one.name, {.least = 1, .most = 100});
  model.accumulating = speeds(fields, "accumulating", factors, file);
  model.alone = speeds(fields, "alone", factors, file);
  for (const GpuField& one : spread)
    if (!model.accumulating.contains(one.gpu) && !model.alone.contains(one.gpu))
      fields.complain(one.name, "a GPU of accumulating or alone");
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
