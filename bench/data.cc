// SPDX-License-Identifier: Apache-2.0
//
// How fast samples of shards come, as one JSON line:
//   bench_data TRAIN.twi --fields jpg cls [--image 224] [--batch 32] [--samples 2000] [--threads 1]
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
#include "data/shards/shard_reader.h"
#include "host/store/stores.h"
#include "measure.h"

namespace {

using namespace tw;

struct Settings {
  data::ReaderOptions data{.decodes = true};
  std::uint64_t batch = 32, samples = 2000, granted = 256;
  double compute_ms = 0;
};

std::vector<std::uint64_t> samples_of(const data::SampleOrder& order, std::uint64_t first,
                                      std::uint64_t count) {
  std::vector<std::uint64_t> samples;
  for (std::uint64_t number = first; number < first + count; ++number)
    samples.push_back(order.index_of(number));
  return samples;
}

Status measure(const Settings& settings, data::ShardReader& reader) {
  const data::SampleOrder order(1, reader.index().size(), settings.batch);
  const double cpu = host::cpu_seconds(), began = bench::wall_seconds();
  double waited = 0;
  for (std::uint64_t done = 0; done < settings.samples; done += settings.batch) {
    const std::uint64_t left = settings.samples - done;
    reader.expect(samples_of(order, done, std::min(left, settings.granted)));
    const double asked = bench::wall_seconds();
    const auto read =
        reader.read(samples_of(order, done, std::min(left, settings.batch)), std::chrono::hours(1));
    if (!read) return read.error();
    waited += bench::wall_seconds() - asked;
    if (settings.compute_ms > 0)
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(settings.compute_ms));
  }
  const double wall = bench::wall_seconds() - began;
  const double count = static_cast<double>(settings.samples);
  fmt::print(R"({{"samples_per_s": {:.1f}, "cpu_s_per_1000": {:.3f}, "waited_share": {:.4f}}})"
             "\n",
             count / wall, 1000 * (host::cpu_seconds() - cpu) / count, waited / wall);
  return Unit{};
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app;
  app.add_option("INDEX.twi", settings.data.index)->required();
  app.add_option("--fields", settings.data.fields)->required();
  app.add_option("--image", settings.data.picture.size);
  app.add_option("--threads", settings.data.threads);
  app.add_option("--batch", settings.batch);
  app.add_option("--samples", settings.samples);
  app.add_option("--granted", settings.granted);
  app.add_option("--compute-ms", settings.compute_ms);
  CLI11_PARSE(app, argc, argv);
  host::Stores stores;
  const auto reader = data::ShardReader::open(settings.data, stores);
  const Status measured = reader ? measure(settings, *reader.value()) : Status(reader.error());
  if (!measured) {
    fmt::print(stderr, "{}\n", measured.error().message);
    return 1;
  }
  return 0;
}
