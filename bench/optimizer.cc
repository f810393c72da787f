// SPDX-License-Identifier: Apache-2.0
// One update of the engine's optimizers on 1, 2, 4 threads, beside memcpy on as many threads in the same run.
//
//   bench_optimizer [--parameters N] [--threads 1 2 4] [--kinds adamw sgd] [--codec fp32] [--repetitions N]
//
// Medians of wall and CPU seconds. GB/s: bytes that have to cross memory (each vector once) by wall time;
// memcpy reads and writes.
#include "train/learn/optimizer.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/median.h"
#include "base/parallel.h"
#include "codec/codec.h"
#include "measure.h"

namespace tw::bench {
namespace {

using train::OptimizerKind;

constexpr std::size_t kPart = 65536;  ///< floats: a segment
constexpr std::size_t kPiece = 2048;

struct Task {
  std::size_t parameters = 125'000'000;
  std::size_t tensors = 100;
  std::vector<std::size_t> threads = {1, 2, 4};
  std::vector<std::string> kinds = {"sgd", "adam", "adamw", "lamb"};
  std::string codec = "fp32";
  int repetitions = 5;
};

struct Kind {
  const char* name;
  train::OptimizerOptions options;
  double floats;  ///< that cross memory for each parameter, the gradient aside
};

// LAMB: moments, then the norms, then the update.
const std::array kKinds = {
    Kind{"sgd", {.kind = OptimizerKind::sgd}, 4}, Kind{"adam", {.kind = OptimizerKind::adam}, 6},
    Kind{"adamw", {.kind = OptimizerKind::adamw}, 6}, Kind{"lamb", {.kind = OptimizerKind::lamb}, 4 + 3 + 4}};

/// Every measure is taken once in each repetition.
class Rows {
 public:
  void add(std::string name, double bytes, std::function<void()> run) {
    rows_.push_back({std::move(name), bytes, std::move(run), {}, {}});
  }

  void measure(int repetitions) {
    for (int repetition = 0; repetition <= repetitions; ++repetition) {
      for (Row& row : rows_) {
        const double wall = wall_seconds(), cpu = host::cpu_seconds();
        row.run();
        const double took = wall_seconds() - wall, used = host::cpu_seconds() - cpu;
        if (repetition == 0) continue;  // its memory is new
        row.wall_s.push_back(took);
        row.cpu_s.push_back(used);
      }
    }
  }

  void print() const {
    fmt::print("| | wall s | CPU s | GB/s |\n|---|---|---|---|\n");
    for (const Row& row : rows_) {
      const double wall_s = median(row.wall_s);
      fmt::print("| {} | {:.3f} | {:.3f} | {:.1f} |\n", row.name, wall_s, median(row.cpu_s),
                 row.bytes / wall_s / 1e9);
    }
  }

 private:
  struct Row {
    std::string name;
    double bytes;
    std::function<void()> run;
    std::vector<double> wall_s, cpu_s;
  };

  std::vector<Row> rows_;
};

std::size_t parts_of(std::size_t count) { return (count + kPart - 1) / kPart; }

/// The mean as it crossed the wire; train/learn/state.cc decodes it in the same pieces.
train::MeanGradient decoded(codec::Codec codec, const std::vector<std::byte>& encoded, std::size_t count) {
  return {parts_of(count), [codec, &encoded, count](std::size_t part, const train::TakePiece& take) {
            std::array<float, kPiece> piece;
            const std::size_t end = std::min(count, (part + 1) * kPart);
            for (std::size_t first = part * kPart; first < end; first += kPiece) {
              const auto values = std::span(piece).first(std::min(kPiece, end - first));
              const auto bytes = std::span(encoded).subspan(encoded_bytes(codec, first),
                                                            encoded_bytes(codec, values.size()));
              decode(codec, bytes, values);
              take(first, values);
            }
          }};
}

train::ParameterGroup group_of(const Task& task, const train::OptimizerOptions& options) {
  std::vector<std::uint64_t> tensors(task.tensors, task.parameters / task.tensors);
  tensors.back() += task.parameters % task.tensors;
  return one_group(options, std::move(tensors));
}

/// Vectors of one run: those of an optimizer are its own.
struct Vectors {
  explicit Vectors(const Task& task)
      : codec(*codec::codec_named(task.codec)),
        parameters(task.parameters, 0.5F),
        other(task.parameters, 1e-3F),
        mean(encoded_bytes(codec, task.parameters)) {
    encode(codec, other, 1.0F, mean);
  }

  codec::Codec codec;
  std::vector<float> parameters, other;
  std::vector<std::byte> mean;
};

void copy(Vectors& vectors, std::size_t threads) {
  const std::size_t each = vectors.other.size() / threads;
  in_parallel(threads, threads, [&](std::size_t i) {
    std::memcpy(&vectors.other[i * each], &vectors.parameters[i * each], each * sizeof(float));
  });
}

void run(const Task& task, const Kind& kind, Vectors& vectors) {
  const std::size_t count = task.parameters;
  std::vector<std::unique_ptr<train::Optimizer>> optimizers;
  std::uint64_t step = 0;
  Rows rows;
  for (const std::size_t threads : task.threads) {
    rows.add(fmt::format("memcpy, {} threads", threads), 8.0 * static_cast<double>(count),
             [&, threads] { copy(vectors, threads); });
    optimizers.push_back(train::make_optimizer({group_of(task, kind.options)}, 0, threads));
    const double bytes =
        kind.floats * sizeof(float) * static_cast<double>(count) + static_cast<double>(vectors.mean.size());
    rows.add(
        fmt::format("{}, {} threads", kind.name, threads), bytes, [&, optimizer = optimizers.back().get()] {
          optimizer->apply(vectors.parameters, decoded(vectors.codec, vectors.mean, count), ++step, 1e-6);
        });
  }
  rows.measure(task.repetitions);
  rows.print();
}

}  // namespace
}  // namespace tw::bench

int main(int argc, char** argv) {
  CLI::App app("Updates of the engine's optimizers beside memcpy");
  tw::bench::Task task;
  app.add_option("--parameters", task.parameters)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--tensors", task.tensors)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--threads", task.threads)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--kinds", task.kinds, "sgd, adam, adamw, lamb")->capture_default_str();
  app.add_option("--codec", task.codec, "of the mean")
      ->check(CLI::IsMember({"fp32", "fp16", "bf16", "int8"}))
      ->capture_default_str();
  app.add_option("--repetitions", task.repetitions)->check(CLI::PositiveNumber)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  tw::bench::Vectors vectors(task);
  for (const tw::bench::Kind& kind : tw::bench::kKinds) {
    if (std::ranges::find(task.kinds, kind.name) != task.kinds.end()) tw::bench::run(task, kind, vectors);
  }
  return 0;
}
