// SPDX-License-Identifier: Apache-2.0
#include "plan/model/model_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text/csv.h"
#include "base/text/quantity.h"
#include "base/text/text.h"
#include "market/built_in.h"
#include "market/gpu_name.h"

namespace tw::plan {
namespace {

/// Fitted to the T4 and A10 runs of Erben et al. that have both speeds (docs/planner.md).
constexpr double kAccumulationPasses = 5.6;
/// 80 % range of machines with several GPUs. Erben et al. 2024 (section 7) give 207 samples/s for 4 T4 of one
/// VM and 80.8 for one: 1.56 times less than the sum. There gradients were summed after each batch, not each
/// round.
constexpr double kSeveralFactor = 1.56;
constexpr double kAloneFactor = 1.08;
/// GPUs that ran the same model differ from scaling by FLOPS by up to this factor.
constexpr double kFlopsFactor = 2;

/// What a core of a processor is worth in TFLOPS of GPUs' data sheets, of which GPUs reach a smaller share
/// than a core does of its own (3 GHz with AVX2: 0.1). An assumption, not a measurement.
constexpr double kCoreTflops = 0.4;
constexpr double kCoreFactor = 5;
constexpr const char* kCpu = "cpu";

constexpr double kBytesPerParam = 4;

/// Geometric mean over the measured GPUs.
std::optional<double> speed_by_flops(const ModelProfile& model, const Gpu& gpu, const Gpus& gpus) {
  double sum = 0;
  int count = 0;
  for (const auto* table : {&model.accumulating, &model.alone}) {
    for (const auto& [name, speed] : *table) {
      const auto other = gpus.find(name);
      if (!other) continue;
      sum += std::log(speed.samples_per_s * gpu.tensor_tflops / other.value().tensor_tflops);
      ++count;
    }
    if (count > 0) return std::exp(sum / count);
  }
  return std::nullopt;
}

std::optional<double> speed_by_cores(const ModelProfile& model, const Gpu& gpu) {
  const auto cpu = model.accumulating.find(kCpu);
  if (cpu == model.accumulating.end() || !(model.cpu_cores > 0)) return std::nullopt;
  return cpu->second.samples_per_s * gpu.tensor_tflops / (model.cpu_cores * kCoreTflops);
}

/// The share of a data sheet's FLOPS that training a transformer reaches: 15 % (T4) to 50 % (A100) in public
/// reports. An assumption, not a measurement.
constexpr double kUtilisation = 0.3;
constexpr double kUtilisationFactor = 2.5;

/// The command that replaces an estimate by a measurement.
std::string how_to_measure(const ModelProfile& model) {
  return fmt::format("tw profile -o {} -- {}", model.file.empty() ? "model.yaml" : model.file,
                     model.command.empty() ? "COMMAND" : model.command);
}

Speed assumed(const ModelProfile& model, Estimate samples_per_s, const std::string& from) {
  return {samples_per_s,
          fmt::format("nobody measured it there; assumed from {}, {} to {}; on one rented hour: {}", from,
                      significant(samples_per_s.low, 4), significant(samples_per_s.high, 4),
                      how_to_measure(model)),
          false};
}

Result<std::map<std::string, ModelProfile>> read_model_table(std::string_view text) {
  TW_TRY(const auto table, CsvTable::parse("models.csv", text,
                                           {"model", "params_m", "tensors", "microbatch",
                                            "data_mb_per_sample", "matchmaking_s"}));
  std::map<std::string, ModelProfile> models;
  for (std::size_t i = 0; i < table.size(); ++i) {
    CsvRow row = table.row(i);
    ModelProfile model;
    model.name = row.word("model");
    model.params_m = row.number("params_m", {.least = 1e-6});
    model.tensors = row.count("tensors", {.least = 1});
    model.microbatch = row.number("microbatch", {.least = 1});
    model.data_mb_per_sample = row.number("data_mb_per_sample", {.least = 0});
    model.matchmaking_s = row.number("matchmaking_s", {.least = 0});
    if (!row.status()) return row.status().error();
    models[model.name] = model;
  }
  return models;
}

Status take_speed(CsvRow row, std::map<std::string, ModelProfile>& models) {
  const auto model = models.find(row.word("model"));
  if (model == models.end()) row.complain("model", "one of models.csv");
  const std::string how = row.word("how");
  if (how != "accumulating" && how != "alone") row.complain("how", "accumulating or alone");
  const MeasuredSpeed speed{row.number("samples_per_s", {.least = 1e-9}),
                            row.number("factor", {.least = 1, .most = 100}), row.text("source")};
  if (!row.status()) return row.status();
  auto& speeds = how == "alone" ? model->second.alone : model->second.accumulating;
  speeds[row.text("gpu")] = speed;
  return Unit{};
}

}  // namespace

Estimate within_factor(double value, double factor) { return {value, value / factor, value * factor}; }

double accumulating_speed(const ModelProfile& model, double alone_samples_per_s, const Gpu& gpu) {
  const double passes_s =
      kAccumulationPasses * model.params_m * 1e6 * kBytesPerParam / (gpu.memory_gb_per_s * 1e9);
  return model.microbatch / (model.microbatch / alone_samples_per_s + passes_s);
}

std::string several_gpus_text(const std::string& machine, bool measured) {
  const auto several = market::several_gpus(machine);
  if (!several || measured) return "";
  return fmt::format(
      "{}: one peer, counted as {} {}; the program has to use all of them (torchrun and group=, "
      "docs/python.md), for a plain process uses one",
      machine, several->count, several->gpu);
}

double flops_of_sample(const ModelProfile& model) { return 6 * model.params_m * 1e6 * model.sequence; }

namespace {

/// No GPU computes more than its data sheet says: a faster one has another model or another sequence.
Status check_flops(const ModelProfile& model, const std::string& machine, const Speed& speed,
                   const Gpus& gpus) {
  const auto several = market::several_gpus(machine);
  const auto sheet = gpus.find(several ? several->gpu : machine);
  if (!sheet) return Unit{};
  const double peak = sheet.value().tensor_tflops * (several ? several->count : 1);
  const double tflops = speed.samples_per_s.value * flops_of_sample(model) / 1e12;
  if (tflops <= peak) return Unit{};
  return Error{fmt::format(
      "{}: {} samples/s of {:g} tokens on {} are {} TFLOPS (6 a parameter and token), and its data sheet has "
      "{}; expected the model and the sequence that were measured ({})",
      model.name, significant(speed.samples_per_s.value, 4), model.sequence, machine, significant(tflops, 3),
      significant(peak, 3), how_to_measure(model))};
}

Result<Speed> believed_speed(const ModelProfile& model, const std::string& gpu, const Gpus& gpus) {
  if (const auto found = model.accumulating.find(gpu); found != model.accumulating.end()) {
    const MeasuredSpeed& speed = found->second;
    return Speed{within_factor(speed.samples_per_s, speed.factor), speed.source, true};
  }
  const auto several = market::several_gpus(gpu);
  if (several && model.alone.find(gpu) == model.alone.end()) {
    const auto one = speed_of(model, several->gpu, gpus);
    if (!one) return one.error();
    const Estimate& each = one.value().samples_per_s;
    return Speed{within_factor(several->count * each.value, std::max(kSeveralFactor, each.high / each.value)),
                 fmt::format("{} times one {}, {}", several->count, several->gpu, one.value().source), false};
  }
  TW_TRY(const auto figures, gpus.find(gpu));
  if (const auto found = model.alone.find(gpu); found != model.alone.end()) {
    const double speed = accumulating_speed(model, found->second.samples_per_s, figures);
    return Speed{within_factor(speed, kAloneFactor), found->second.source, true};
  }
  if (const auto speed = speed_by_flops(model, figures, gpus)) {
    return assumed(model, within_factor(*speed, kFlopsFactor), "the FLOPS of other GPUs");
  }
  if (const auto speed = speed_by_cores(model, figures)) {
    return assumed(model, within_factor(*speed, kCoreFactor),
                   fmt::format("{:g} cores of a processor", model.cpu_cores));
  }
  if (const double flops = flops_of_sample(model); flops > 0) {
    return assumed(
        model, within_factor(kUtilisation * figures.tensor_tflops * 1e12 / flops, kUtilisationFactor),
        fmt::format("{:g} % of the FLOPS of its data sheet and 6 a parameter and token", 100 * kUtilisation));
  }
  return Error{
      fmt::format("{}: no speed of any GPU is known; measure one: {}", model.name, how_to_measure(model))};
}

}  // namespace

Result<Speed> speed_of(const ModelProfile& model, const std::string& gpu, const Gpus& gpus) {
  TW_TRY(const auto speed, believed_speed(model, gpu, gpus));
  TW_TRY(check_flops(model, gpu, speed, gpus));
  return speed;
}

const Models& Models::built_in() {
  static const Models models =
      read_models(market::built_in_file("models.csv"), market::built_in_file("speeds.csv")).value();
  return models;
}

Result<ModelProfile> Models::find(const std::string& name) const {
  if (const auto found = models_.find(name); found != models_.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [model, profile] : models_) {
    if (lower(model) == lower(name)) return profile;
    known.push_back(model);
  }
  return Error{fmt::format(
      "{}: unknown model; known are {}; one of your own is a file: tw profile -o model.yaml -- COMMAND", name,
      fmt::join(known, ", "))};
}

Result<Models> read_models(std::string_view models, std::string_view speeds) {
  TW_TRY(auto profiles, read_model_table(models));
  TW_TRY(const auto table,
         CsvTable::parse("speeds.csv", speeds, {"model", "gpu", "how", "samples_per_s", "factor", "source"}));
  for (std::size_t i = 0; i < table.size(); ++i) {
    TW_TRY(take_speed(table.row(i), profiles));
  }
  Models all;
  for (auto& [name, profile] : profiles) all.add(std::move(profile));
  return all;
}

}  // namespace tw::plan
