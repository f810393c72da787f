// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "base/median.h"
#include "base/text/write_file.h"
#include "cli/arguments/number_option.h"
#include "cli/commands.h"
#include "cli/run/data_doors.h"
#include "cli/terminal/terminal.h"
#include "plan/input/model_profile_yaml.h"
#include "plan/model/cluster.h"
#include "train/run/run_file_yaml.h"
#include "train/torch_trainer.h"

namespace tw::cli {
namespace {

constexpr int kWarmUp = 2;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Samples per second of the median microbatch.
double measure(train::Trainer& trainer, const train::RunOptions& options, double seconds) {
  std::vector<float> parameters(trainer.parameter_count());
  std::vector<float> gradient(parameters.size());
  trainer.initial_parameters(parameters);
  std::vector<double> times;
  std::uint64_t first = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < 3 + kWarmUp || seconds_since(start) < seconds; ++step) {
    const auto began = std::chrono::steady_clock::now();
    trainer.accumulate(parameters, {first, options.microbatch}, gradient);
    if (step >= kWarmUp) times.push_back(seconds_since(began));
    first += options.microbatch;
  }
  return static_cast<double>(options.microbatch) / median(std::move(times));
}

}  // namespace

void describe_profile(CLI::App& app, ProfileArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("profile", "Measure how fast this machine trains a model, for tw predict");
  command->add_option("RUN", arguments.run_file, "run file (docs/run_file.md)")->required();
  command->add_option("--name", arguments.name, "of this machine's kind in lists of peers, such as T4")
      ->capture_default_str();
  command->add_option("--seconds", arguments.seconds, "to measure for")
      ->check(number_within(0.01, 86400))
      ->capture_default_str();
  command->add_option("--threads", arguments.threads, "of the calculation")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--data-mb-per-sample", arguments.data_mb_per_sample,
                   "what a sample reads from a data store that charges for it")
      ->check(number_within(0, 1e6))
      ->capture_default_str();
  command->add_option("--out", arguments.out, "file to write the profile to; default: stdout");
  command->footer(
      "The profile is the file that `profile:` names in CLUSTER.yaml. Speeds of other machines: run it "
      "there,\n"
      "and put the lines under `accumulating` together.\n"
      "\nExample:\n  tw profile examples/mnist.yaml --name cpu --out mnist-profile.yaml");
}

int profile(const ProfileArguments& arguments) {
  const auto named = plan::parse_peers("1x" + arguments.name + "@own:here");
  if (!named || named.value().size() != 1)
    return complain(fmt::format("--name {}: expected a word without @ and ;", arguments.name), kUsage);
  const auto options = train::read_run_file(arguments.run_file);
  if (!options) return complain(options.error().message, kUsage);
  host::Stores stores(warn_of_stores());
  auto trainer = make_torch_trainer(options.value(), arguments.threads,
                                    data_doors(stores, options.value(), arguments.threads));
  if (!trainer) return complain(fmt::format("{}: {}", arguments.run_file, trainer.error().message), kUsage);
  plan::ModelProfile model;
  model.name = std::filesystem::path(options.value().model).stem().string();
  model.params_m = static_cast<double>(trainer.value()->parameter_count()) / 1e6;
  model.tensors = static_cast<int>(trainer.value()->tensor_sizes().size());
  model.microbatch = static_cast<double>(options.value().microbatch);
  model.data_mb_per_sample = arguments.data_mb_per_sample;
  model.accumulating[named.value().front().gpu] = {
      measure(*trainer.value(), options.value(), arguments.seconds), 1.05, ""};
  const std::string text = write_profile(model);
  if (arguments.out.empty()) {
    print_out("{}", text);
    return kDone;
  }
  const Status written = write_file(arguments.out, text);
  return written ? kDone : complain("--out " + written.error().message, kFailed);
}

}  // namespace tw::cli
