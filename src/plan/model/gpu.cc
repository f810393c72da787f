// SPDX-License-Identifier: Apache-2.0
#include "plan/model/gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/text/csv.h"
#include "base/text/text.h"
#include "market/built_in.h"

namespace tw::plan {

const Gpus& Gpus::built_in() {
  static const Gpus gpus = read_gpus("gpus.csv", market::built_in_file("gpus.csv")).value();
  return gpus;
}

Result<Gpu> Gpus::find(const std::string& name) const {
  if (const auto found = gpus_.find(name); found != gpus_.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [gpu, figures] : gpus_) known.push_back(gpu);
  return Error{fmt::format("{}: unknown GPU; known are {}", name, fmt::join(known, ", "))};
}

std::string Gpus::spelled(const std::string& name) const {
  for (const auto& [gpu, figures] : gpus_)
    if (lower(gpu) == lower(name)) return gpu;
  return name;
}

Result<Gpus> read_gpus(const std::string& file, std::string_view text) {
  const auto table = CsvTable::parse(file, text, {"gpu", "tensor_tflops", "memory_gb_per_s"});
  if (!table) return table.error();
  Gpus gpus;
  for (std::size_t i = 0; i < table.value().size(); ++i) {
    CsvRow row = table.value().row(i);
    gpus.gpus_[row.word("gpu")] = {row.number("tensor_tflops", {.least = 1e-3}),
                                   row.number("memory_gb_per_s", {.least = 1e-3})};
    if (!row.status()) return row.status().error();
  }
  return gpus;
}

}  // namespace tw::plan
