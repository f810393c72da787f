// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "base/text/option.h"
#include "cli/arguments/arguments.h"
#include "cli/arguments/link_arguments.h"
#include "cli/commands.h"
#include "cli/plan/catalog_price.h"
#include "cli/run/data_doors.h"
#include "cli/run/peer_process.h"
#include "peer/links.h"
#include "train/run/run_file_yaml.h"
#include "train/torch_trainer.h"

namespace tw::cli {

namespace {

constexpr std::uint64_t kMaxThreads = 1024;

Result<std::vector<std::pair<std::string, std::string>>> settings(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& text : texts) {
    auto setting = parse_setting(text);
    if (!setting) return setting.error();
    pairs.push_back(std::move(setting).value());
  }
  return pairs;
}

Result<int> threads_of(const TrainArguments& arguments) {
  if (arguments.threads.empty()) return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const auto threads = parse_count("--threads", arguments.threads, {.least = 1, .most = kMaxThreads});
  if (!threads) return threads.error();
  return static_cast<int>(threads.value());
}

Result<train::RunOptions> run_of(const TrainArguments& arguments) {
  const auto overrides = settings(arguments.set);
  if (!overrides) return overrides.error();
  return train::read_run_file(arguments.run_file, overrides.value());
}

}  // namespace

void describe_train(CLI::App& app, TrainArguments& arguments) {
  CLI::App* command = app.add_subcommand("train", "Take part in a run as one peer; the first one starts it");
  command->add_option("RUN.yaml", arguments.run_file, "what is trained; the same on every peer")->required();
  for (const peer::LinkField& field : peer::link_fields()) {
    describe_link(*command, field, arguments.links);
    if (field.name != "site") continue;
    command->add_option("--threads", arguments.threads,
                        "threads of calculation; default: the cores of this machine");
    command->add_option("--set", arguments.set, "KEY=VALUE, wins over the run file")->allow_extra_args(false);
  }
  command->add_flag("--quiet", arguments.quiet, "print nothing but errors");
  command->footer(
      "SIGINT (Ctrl-C): hand in what is done and leave after the round; twice: leave at once. SIGTERM, "
      "SIGUSR1 "
      "and\nSIGUSR2 are notices: leave within --grace; SIGTERM again, a second later or more: leave at "
      "once.\n"
      "Exit code 75: left on a notice, or did not join because of one, and the run goes on; 0: the run is "
      "complete.\n"
      "--usd-per-h catalog[:TYPE] takes the price from the catalogs of tw catalog: as spot, for an anchor on "
      "demand.\nAWS names the type in its firmware, elsewhere it must be given.\n"
      "Started again with the same options, a peer joins the run that goes on. With nobody to join it waits "
      "for\n"
      "the others first, then goes on alone from its newest usable checkpoint. With --rejoin and addresses\n"
      "that nobody answers it ends with 75.\n"
      "\nExamples:\n"
      "  tw train examples/mnist.yaml\n"
      "  tw train examples/mnist.yaml --run myrun --listen 10.0.0.5:7000 --wait-for 4 --out logs\n"
      "  tw train examples/mnist.yaml --token @token --listen 10.0.0.6:7000\n"
      "  tw train examples/mnist.yaml --token @token --bootstrap 10.0.0.5:7000\n"
      "  tw train examples/mnist.yaml --token @token --join 10.0.0.5:7000 --listen none\n"
      "  tw train examples/mnist.yaml --token @token --listen 10.0.0.7:7000 --site aws:us-east-1:a\n"
      "  tw train examples/mnist.yaml --watch 127.0.0.1:8080\n"
      "  tw train examples/mnist.yaml --set training.rounds=20 --set evaluation.every=5");
}

int train(const TrainArguments& arguments) {
  auto options = peer::read_links(arguments.links, peer::Spelling::command_line, catalog_price);
  if (!options) return complain(options.error().message, kUsage);
  const auto threads = threads_of(arguments);
  if (!threads) return complain(threads.error().message, kUsage);
  const auto run = run_of(arguments);
  if (!run) return complain(run.error().message, kUsage);
  options.value().session.run = run.value();
  host::Stores stores(warn_of_stores());
  auto trainer =
      make_torch_trainer(run.value(), threads.value(), data_doors(stores, run.value(), threads.value()));
  if (!trainer) return complain(trainer.error().message, kFailed);
  options.value().session.run.layout = trainer.value()->layout();
  options.value().session.run.sources = trainer.value()->sources();
  look_at_past(options.value(), trainer.value()->parameter_count());
  place_checkpoints(options.value(), trainer.value()->parameter_count());
  const PeerProcess::Words words{.run_file = arguments.run_file,
                                 .quiet = arguments.quiet || options.value().progress == peer::Progress::off};
  options.value().order = trainer.value()->order();
  return PeerProcess(std::move(options).value(), words, std::move(trainer).value()).run();
}

}  // namespace tw::cli
