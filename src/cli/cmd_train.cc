// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/peer_process.h"
#include "host/random_os.h"
#include "train/run_file_yaml.h"
#include "train/torch_trainer.h"

namespace tw {

namespace {

/// Whole numbers beyond it are rounded by most readers of JSON, and ids stand in the event log.
constexpr std::uint64_t kMaxId = (1ULL << 53) - 1;
constexpr std::uint64_t kMaxThreads = 1024;

struct TrainPlan {
  PeerOptions peer;
  int threads = 1;
};

Result<PeerId> chosen_id(const std::string& text) {
  if (!text.empty()) {
    const auto id = parse_count("--id", text, {.least = 1, .most = kMaxId});
    if (!id) return id.error();
    return PeerId{id.value()};
  }
  return PeerId{std::max<std::uint64_t>(1, OsRandom().next() & kMaxId)};
}

Result<std::vector<std::pair<std::string, std::string>>> settings(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& text : texts) {
    auto setting = parse_setting(text);
    if (!setting) return setting.error();
    pairs.push_back(std::move(setting).value());
  }
  return pairs;
}

Result<TrainPlan> plan_of(const TrainArguments& arguments) {
  TrainPlan plan;
  SessionOptions& session = plan.peer.session;
  const auto id = chosen_id(arguments.id);
  if (!id) return id.error();
  session.self = id.value();
  session.incarnation = OsRandom().next();
  for (const std::string& text : arguments.join) {
    auto address = parse_address_option("--join", text, arguments.insecure);
    if (!address) return address.error();
    session.join.push_back(std::move(address).value());
  }
  auto listen = parse_address_option("--listen", arguments.listen, arguments.insecure);
  if (!listen) return listen.error();
  session.listen = std::move(listen).value();
  const auto wait_for = parse_count("--wait-for", arguments.wait_for, {.least = 1, .most = 10'000});
  if (!wait_for) return wait_for.error();
  session.wait_for = static_cast<std::uint32_t>(wait_for.value());

  plan.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (!arguments.threads.empty()) {
    const auto threads = parse_count("--threads", arguments.threads, {.least = 1, .most = kMaxThreads});
    if (!threads) return threads.error();
    plan.threads = static_cast<int>(threads.value());
  }
  const auto overrides = settings(arguments.set);
  if (!overrides) return overrides.error();
  auto run = read_run_file(arguments.run_file, overrides.value());
  if (!run) return run.error();
  session.run = std::move(run).value();
  plan.peer.run_file = arguments.run_file;
  plan.peer.out = arguments.out;
  plan.peer.quiet = arguments.quiet;
  return plan;
}

}  // namespace

void describe_train(CLI::App& app, TrainArguments& arguments) {
  CLI::App* command = app.add_subcommand("train", "Take part in a run as one peer; the first one starts it");
  command->add_option("RUN.yaml", arguments.run_file, "what is trained; the same on every peer")->required();
  command
      ->add_option("--join", arguments.join,
                   "HOST:PORT of any peer of the run; several are tried; none: start the run")
      ->allow_extra_args(false);
  command
      ->add_option("--listen", arguments.listen,
                   "HOST:PORT where others reach this peer; port 0: any free one")
      ->capture_default_str();
  command->add_option("--out", arguments.out, "folder for the event log; none: terminal only");
  command->add_option("--id", arguments.id,
                      "number of this peer, never used before in the run; default: by chance");
  command->add_option("--wait-for", arguments.wait_for, "the first peer begins when so many peers are there")
      ->capture_default_str();
  command->add_option("--threads", arguments.threads,
                      "threads of calculation; default: the cores of this machine");
  command->add_option("--set", arguments.set, "KEY=VALUE, wins over the run file")->allow_extra_args(false);
  command->add_flag("--insecure", arguments.insecure,
                    "allow addresses beyond this machine, without encryption");
  command->add_flag("--quiet", arguments.quiet, "print nothing but errors");
  command->footer(
      "SIGINT (Ctrl-C) or SIGTERM: hand in what is done and leave after the round; twice: leave at once.\n"
      "A run with a checkpoint folder goes on from its newest usable checkpoint.\n"
      "\nExamples:\n"
      "  tw train examples/mnist.yaml\n"
      "  tw train examples/mnist.yaml --join 127.0.0.1:41234\n"
      "  tw train examples/mnist.yaml --listen 10.0.0.5:7000 --insecure --wait-for 4 --out logs\n"
      "  tw train examples/mnist.yaml --set training.rounds=20 --set evaluation.every=5");
}

int train(const TrainArguments& arguments) {
  auto plan = plan_of(arguments);
  if (!plan) return complain(plan.error().message, kUsage);
  auto trainer = make_torch_trainer(plan.value().peer.session.run, plan.value().threads);
  if (!trainer) return complain(trainer.error().message, kFailed);
  return PeerProcess(std::move(plan.value().peer), std::move(trainer).value()).run();
}

}  // namespace tw
