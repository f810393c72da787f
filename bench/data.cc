// SPDX-License-Identifier: Apache-2.0
//
// How fast samples of shards come, as one JSON line:
//   bench_data TRAIN.twi --inputs jpg --targets cls [--image 224] [--batch 32] [--samples 2000] [--threads 1]
//              [--compute-ms 0] [--granted 256]
// Each batch is taken, then "computed" for so long without using the processor; so many samples after it are
// expected, as if they were leased. bench/data.py compares with others.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "data/sample_order.h"
#include "data/shards/shard_dataset.h"
#include "host/store/stores.h"
#include "measure.h"

namespace {

using namespace tw;

struct Settings {
  data::ShardOptions data;
  std::uint64_t batch = 32, samples = 2000, granted = 256;
  double compute_ms = 0;
};

std::vector<data::Pick> picks_of(const data::SampleOrder& order, std::uint64_t first, std::uint64_t count) {
  std::vector<data::Pick> picks;
  for (std::uint64_t number = first; number < first + count; ++number)
    picks.push_back({order.index_of(number), number});
  return picks;
}

void measure(const Settings& settings, const data::Dataset& samples) {
  const data::SampleOrder order(1, samples.size(), settings.batch);
  const double cpu = host::cpu_seconds(), began = bench::wall_seconds();
  double waited = 0;
  for (std::uint64_t done = 0; done < settings.samples; done += settings.batch) {
    const std::uint64_t left = settings.samples - done;
    samples.expect(picks_of(order, done, std::min(left, settings.granted)));
    samples.pick(picks_of(order, done, std::min(left, settings.batch)));
    waited += std::chrono::duration<double>(samples.take_news().waited).count();
    if (settings.compute_ms > 0)
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(settings.compute_ms));
  }
  const double wall = bench::wall_seconds() - began;
  const double count = static_cast<double>(settings.samples);
  fmt::print(R"({{"samples_per_s": {:.1f}, "cpu_s_per_1000": {:.3f}, "waited_share": {:.4f}}})"
             "\n",
             count / wall, 1000 * (host::cpu_seconds() - cpu) / count, waited / wall);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  settings.data.now = [] {
    return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
  };
  CLI::App app;
  app.add_option("INDEX.twi", settings.data.index)->required();
  app.add_option("--inputs", settings.data.inputs)->required();
  app.add_option("--targets", settings.data.targets)->required();
  app.add_option("--image", settings.data.picture.size);
  app.add_option("--threads", settings.data.threads);
  app.add_option("--batch", settings.batch);
  app.add_option("--samples", settings.samples);
  app.add_option("--granted", settings.granted);
  app.add_option("--compute-ms", settings.compute_ms);
  CLI11_PARSE(app, argc, argv);
  host::Stores stores;
  const auto samples = data::open_shard_dataset(settings.data, stores);
  if (!samples) {
    fmt::print(stderr, "{}\n", samples.error().message);
    return 1;
  }
  measure(settings, *samples.value());
  return 0;
}
