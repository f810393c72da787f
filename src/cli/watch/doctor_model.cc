// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/doctor_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>
#include <vector>

#include "cli/run/data_doors.h"
#include "train/run/run_data.h"
#include "train/run/run_file_yaml.h"
#include "train/torch_trainer.h"

namespace tw::cli {
namespace {

constexpr std::uint64_t kMostWritten = 256ULL << 20;
constexpr std::uint64_t kUsualWritten = 64ULL << 20;
constexpr double kTrains_s = 1.0, kReads_s = 0.5;

double lasted_s(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The state of the optimizer, in vectors of the model's size.
double vectors_of(const train::OptimizerOptions& optimizer) {
  if (train::averages(optimizer.kind)) return 0;
  if (optimizer.kind != train::OptimizerKind::sgd) return 2;
  return optimizer.momentum > 0 ? 1 : 0;
}

/// Calls step, which takes `microbatch` samples, for so long: samples a second. The first call warms up.
template <class Step>
double rate_of(std::uint64_t microbatch, double lasts_s, Step step) {
  step(0);
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t steps = 0;
  do {
    step(++steps * microbatch);
  } while (lasted_s(begin) < lasts_s);
  return static_cast<double>(steps * microbatch) / lasted_s(begin);
}

}  // namespace

DoctorModel::DoctorModel(std::string folder, std::optional<train::RunOptions> run,
                         std::unique_ptr<host::Stores> stores, std::unique_ptr<train::Trainer> trainer)
    : folder_(std::move(folder)),
      run_(std::move(run)),
      stores_(std::move(stores)),
      trainer_(std::move(trainer)) {}

measure::Needs DoctorModel::needs() const {
  measure::Needs needs;
  if (trainer_) needs.parameters = trainer_->parameter_count();
  if (run_) needs.optimizer_vectors = vectors_of(run_->optimizer);
  return needs;
}

measure::Finding DoctorModel::look_at_disk(const measure::Needs& needs) const {
  const std::uint64_t bytes = std::min(needs.state_bytes().value_or(kUsualWritten), kMostWritten);
  const auto disk = measure::measure_disk(folder_, bytes);
  if (disk) return judge_disk(folder_, disk.value(), needs);
  return {"disk", measure::Verdict::hurts, "no checkpoint can be written: " + disk.error().message,
          "make the folder writable, or set checkpoint.folder"};
}

std::optional<measure::Finding> DoctorModel::look_at_data() const {
  if (!trainer_) return std::nullopt;
  const auto data = train::open_run_data(run_->data, data_doors(*stores_, *run_, 1));
  if (!data)
    return measure::Finding{"data", measure::Verdict::hurts, data.error().message, "data: in the run file"};
  std::vector<float> parameters(trainer_->parameter_count()), gradient(parameters.size());
  trainer_->initial_parameters(parameters);
  const std::uint64_t microbatch = run_->microbatch, samples = data.value().training->size();
  measure::LoaderFacts loader;
  loader.model_per_s = rate_of(microbatch, kTrains_s, [&](std::uint64_t first) {
    trainer_->accumulate(parameters, {first, microbatch}, gradient);
  });
  std::vector<std::uint64_t> indices(microbatch);
  loader.data_per_s = rate_of(microbatch, kReads_s, [&](std::uint64_t first) {
    for (std::uint64_t i = 0; i < microbatch; ++i) indices[i] = (first + i) * 7919 % samples;
    (void)data.value().training->gather(indices);
  });
  return judge_loader(loader);
}

Result<DoctorModel> open_doctor_model(const DoctorArguments& arguments, const std::string& run_file) {
  std::string folder = arguments.folder;
  if (run_file.empty()) return DoctorModel(folder.empty() ? "." : folder, std::nullopt, nullptr, nullptr);
  auto run = train::read_run_file(run_file);
  if (!run) return run.error();
  if (folder.empty()) folder = run.value().checkpoint.folder;
  if (folder.empty()) folder = ".";
  if (run.value().has_own_model()) return DoctorModel(folder, std::move(run).value(), nullptr, nullptr);
  auto stores = std::make_unique<host::Stores>(warn_of_stores());
  auto trainer = make_torch_trainer(run.value(), 1, data_doors(*stores, run.value(), 1));
  if (!trainer) return Error{fmt::format("{}: {}", run_file, trainer.error().message)};
  return DoctorModel(folder, std::move(run).value(), std::move(stores), std::move(trainer).value());
}

}  // namespace tw::cli
