// SPDX-License-Identifier: Apache-2.0
#include "plan/model/gpu_memory.h"

#include <fmt/format.h>

#include "base/text/quantity.h"
#include "market/gpu_name.h"

namespace tw::plan {
namespace {

/// Fragments, the driver's context, and batches that are larger than those measured.
constexpr double kMargin = 1.1;
/// fp32: parameter, gradient and two moments.
constexpr double kTrainingBytesPerParam = 16;
constexpr double kBytesPerGib = 1024.0 * 1024 * 1024;

bool was_measured_on(const ModelProfile& model, const std::string& machine) {
  return model.accumulating.contains(machine) || model.alone.contains(machine);
}

}  // namespace

GpuMemoryNeed gpu_memory_need(const ModelProfile& model) {
  if (model.gpu_memory_mb > 0)
    return {kMargin * model.gpu_memory_mb * 1e6 / kBytesPerGib,
            fmt::format("measured, plus 10 %; {}", model.file.empty() ? model.name : model.file)};
  return {kMargin * kTrainingBytesPerParam * model.params_m * 1e6 / kBytesPerGib,
          fmt::format("{} million parameters of {:g} bytes with gradients and optimizer, plus 10 %; "
                      "activations come on top: tw profile measures them",
                      significant(model.params_m, 4), kTrainingBytesPerParam)};
}

double gpu_memory_gib(const std::string& machine, double memory_gib, const Gpus& gpus) {
  if (memory_gib > 0) return memory_gib;
  const auto several = market::several_gpus(machine);
  const auto sheet = gpus.find(several ? several->gpu : machine);
  return sheet ? sheet.value().memory_gib : 0;
}

Status check_gpu_memory(const ModelProfile& model, const std::string& machine, double memory_gib,
                        const Gpus& gpus) {
  const auto several = market::several_gpus(machine);
  if (was_measured_on(model, machine) || (several && was_measured_on(model, several->gpu))) return Unit{};
  const double has_gib = gpu_memory_gib(machine, memory_gib, gpus);
  const GpuMemoryNeed need = gpu_memory_need(model);
  if (has_gib == 0 || need.gib <= has_gib) return Unit{};
  return Error{fmt::format("{}: {} GiB of GPU memory, and {} needs {} ({})", machine, significant(has_gib, 3),
                           model.name, significant(need.gib, 3), need.from)};
}

}  // namespace tw::plan
