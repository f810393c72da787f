// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "base/text/option.h"
#include "cli/commands.h"
#include "launch/local/child.h"
#include "measure/bench/arguments.h"
#include "measure/bench/join.h"
#include "measure/bench/watch.h"

namespace tw::cli {
namespace {

constexpr std::uint64_t kMostWork_ms = 60'000;
constexpr std::uint64_t kMostJoins = 100;

Result<measure::JoinOptions> join_options_of(const BenchJoinArguments& arguments) {
  measure::JoinOptions options;
  TW_TRY(const auto bytes, measure::parse_bytes("--bytes", arguments.bytes));
  options.bytes = bytes;
  TW_TRY(const auto peers,
         parse_count("--peers", arguments.peers, {.least = 1, .most = launch::kMaxLocalPeers - 1}));
  options.peers = peers;
  TW_TRY(const auto work, parse_count("--work-ms", arguments.work, {.least = 0, .most = kMostWork_ms}));
  options.work = std::chrono::milliseconds(work);
  TW_TRY(const auto turns, parse_count("--turns", arguments.turns, {.least = 1, .most = kMostJoins}));
  options.turns = turns;
  return options;
}

}  // namespace

void describe_bench_join(CLI::App& bench, BenchJoinArguments& arguments) {
  CLI::App* command =
      bench.add_subcommand("join", "Measure how long a peer takes to join a run, part by part");
  command->add_option("--bytes", arguments.bytes, "size of the state: parameters and both moments of AdamW")
      ->capture_default_str();
  command->add_option("--peers", arguments.peers, "peers that train before it comes")->capture_default_str();
  command->add_option("--work-ms", arguments.work, "sleep of a microbatch; a round has four for each peer")
      ->capture_default_str();
  command->add_option("--turns", arguments.turns, "how often all processes start anew")
      ->capture_default_str();
  command->add_flag("--json", arguments.json, "print JSON on stdout; docs/benchmarks.md has the keys");
  command->footer(
      "Starts peers, each a process with a whole session whose work is to sleep, and one more that joins "
      "them.\n"
      "  bound      as many bytes from memory to memory over one plain connection of the loopback, hashed "
      "once"
      "\n\nExamples:\n"
      "  tw bench join\n"
      "  tw bench join --bytes 1GB --work-ms 2000 --turns 5");
}

int bench_join(const BenchJoinArguments& arguments) {
  const auto options = join_options_of(arguments);
  if (!options) return complain(options.error().message, kUsage);
  measure::watch_interrupts();
  const auto result =
      measure::join(options.value(), [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
  if (measure::interrupted()) return kInterrupted;
  if (!result) return complain(result.error().message, kFailed);
  fmt::print("{}", arguments.json ? measure::to_json(result.value()) : measure::render(result.value()));
  return kDone;
}

}  // namespace tw::cli
