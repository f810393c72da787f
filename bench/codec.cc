// SPDX-License-Identifier: Apache-2.0
// What one core encodes, decodes, and decodes and adds, from memory to memory, beside memcpy in the same run.
//
//   bench_codec [--bytes N] [--repetitions N] [--kernels reference|avx2|avx512]
//
// All numbers are GB of fp32 values a second, medians; CPU time, so that others on the machine count less.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/median.h"
#include "base/prng.h"
#include "codec/kernels.h"
#include "measure.h"

namespace tw::bench {
namespace {

struct Task {
  std::size_t bytes = std::size_t{256} << 20;  ///< of fp32: beyond any cache
  int repetitions = 11;
  std::string kernels;  ///< empty: the fastest
};

/// Every measure is taken once in each repetition.
class Rates {
 public:
  explicit Rates(const Task& task) : task_(task) {}

  void add(std::string name, std::function<void()> run) {
    rows_.push_back({std::move(name), std::move(run), {}});
  }

  void measure() {
    for (int repetition = 0; repetition <= task_.repetitions; ++repetition) {
      for (Row& row : rows_) {
        const double before = host::cpu_seconds();
        row.run();
        const double took = host::cpu_seconds() - before;
        if (repetition > 0) row.gb_per_s.push_back(static_cast<double>(task_.bytes) / took / 1e9);
      }
    }
  }

  void print() const {
    for (const Row& row : rows_) fmt::print("| {} | {:.1f} |\n", row.name, median(row.gb_per_s));
  }

 private:
  struct Row {
    std::string name;
    std::function<void()> run;
    std::vector<double> gb_per_s;
  };

  Task task_;
  std::vector<Row> rows_;
};

codec::KernelSet chosen(const std::string& name) {
  const std::vector<codec::KernelSet> sets = codec::kernel_sets();
  for (const codec::KernelSet& set : sets) {
    if (set.name == name) return set;
  }
  return sets.back();
}

void run(const Task& task) {
  const std::size_t count = task.bytes / sizeof(float);
  std::vector<float> values(count), sum(count, 0.5F);
  Prng prng(1);
  for (float& value : values) value = static_cast<float>(prng.uniform() - 0.5);
  std::vector<std::vector<std::byte>> encoded;
  for (const codec::Codec codec : codec::kCodecs)
    encoded.emplace_back(encoded_bytes(codec, count), std::byte{1});

  Rates rates(task);
  const codec::KernelSet set = chosen(task.kernels);
  rates.add("memcpy", [&] { std::memcpy(sum.data(), values.data(), task.bytes); });
  for (std::size_t i = 0; i < codec::kCodecs.size(); ++i) {
    const codec::Kernel& kernel = set.of(codec::kCodecs[i]);
    std::byte* bytes = encoded[i].data();
    const std::string name = fmt::format("{} {}", name_of(codec::kCodecs[i]), set.name);
    rates.add(name + " | encode", [&, bytes] { kernel.encode(values.data(), count, 0.25F, bytes); });
    rates.add(name + " | decode", [&, bytes] { kernel.decode(bytes, count, sum.data()); });
    rates.add(name + " | decode and add", [&, bytes] { kernel.add(bytes, count, 0.25F, sum.data()); });
  }
  rates.measure();
  rates.print();
}

}  // namespace
}  // namespace tw::bench

int main(int argc, char** argv) {
  CLI::App app("Codecs from memory to memory on one core");
  tw::bench::Task task;
  app.add_option("--bytes", task.bytes, "of fp32")->transform(CLI::AsSizeValue(false))->capture_default_str();
  app.add_option("--repetitions", task.repetitions)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--kernels", task.kernels)->check(CLI::IsMember({"reference", "avx2", "avx512"}));
  CLI11_PARSE(app, argc, argv);
  tw::bench::run(task);
  return 0;
}
