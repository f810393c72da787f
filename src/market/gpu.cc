// SPDX-License-Identifier: Apache-2.0
#include "market/gpu.h"

#include "base/check.h"
#include "base/text/csv.h"
#include "market/built_in.h"

namespace tw::market {

const std::vector<Gpu>& built_in_gpus() {
  static const std::vector<Gpu> gpus = [] {
    const auto table = CsvTable::parse("gpus.csv", built_in_file("gpus.csv"),
                                       {"gpu", "tensor_tflops", "memory_gb_per_s", "memory_gib"});
    TW_CHECK(table.ok());
    std::vector<Gpu> read;
    for (std::size_t i = 0; i < table.value().size(); ++i) {
      CsvRow row = table.value().row(i);
      read.push_back({.name = row.word("gpu"),
                      .tensor_tflops = row.number("tensor_tflops", {.least = 1e-3}),
                      .memory_gb_per_s = row.number("memory_gb_per_s", {.least = 1e-3}),
                      .memory_gib = row.number_or("memory_gib", 0, {.least = 0})});
      TW_CHECK(row.status().ok());
    }
    return read;
  }();
  return gpus;
}

}  // namespace tw::market
