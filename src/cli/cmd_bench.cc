// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "base/text/option.h"
#include "cli/commands.h"
#include "cli/terminal/terminal.h"
#include "host/tcp/stream_count.h"
#include "launch/local/child.h"
#include "measure/bench/arguments.h"
#include "measure/bench/reduce.h"
#include "measure/bench/result.h"
#include "measure/bench/watch.h"

namespace tw::cli {

namespace {

using namespace measure;

constexpr std::uint64_t kMostRounds = 200;

Status parse_counts(const BenchArguments& arguments, measure::ReduceOptions& options) {
  if (!arguments.peers.empty()) {
    TW_TRY(const auto peers,
           parse_count("--peers", arguments.peers, {.least = 2, .most = launch::kMaxLocalPeers}));
    options.peers = peers;
  }
  TW_TRY(const auto bytes, measure::parse_bytes("--bytes", arguments.bytes));
  options.bytes = bytes;
  TW_TRY(const auto rounds, parse_count("--rounds", arguments.rounds, {.least = 1, .most = kMostRounds}));
  options.rounds = rounds;
  TW_TRY(const auto warm_up, parse_count("--warm-up", arguments.warm_up, {.least = 0, .most = kMostRounds}));
  options.warm_up = warm_up;
  TW_TRY(const auto turns, parse_count("--turns", arguments.turns, {.least = 1, .most = kMostRounds}));
  options.turns = turns;
  if (!arguments.streams.empty()) {
    TW_TRY(const auto streams,
           parse_count("--streams", arguments.streams, {.least = 1, .most = host::StreamCount::kMost}));
    options.streams = streams;
  }
  return Unit{};
}

Result<measure::ReduceOptions> options_of(const BenchArguments& arguments) {
  measure::ReduceOptions options;
  TW_TRY(parse_counts(arguments, options));
  options.topology = arguments.topology;
  options.tls = arguments.tls;
  TW_TRY(const auto codec, measure::parse_codec(arguments.codec));
  options.codec = codec;
  TW_TRY(const auto sites, measure::parse_site_use(arguments.sites));
  options.sites = sites;
  if (!arguments.kill.empty() && !arguments.stop.empty())
    return Error{fmt::format("--kill {} and --stop {}: expected one of them; run them one after the other",
                             arguments.kill, arguments.stop)};
  if (!arguments.kill.empty() || !arguments.stop.empty()) {
    const bool kills = !arguments.kill.empty();
    TW_TRY(const auto disturbance,
           measure::parse_disturbance(kills ? "--kill" : "--stop", kills ? arguments.kill : arguments.stop,
                                      options.most_peers()));
    options.disturbance = disturbance;
  }
  if (!arguments.disturb.empty()) {
    if (!arguments.kill.empty() || !arguments.stop.empty())
      return Error{
          fmt::format("--disturb {}: expected no --kill and no --stop beside it", arguments.disturb)};
    TW_TRY(const auto trouble, measure::parse_trouble(arguments.disturb, !arguments.topology.empty()));
    options.trouble = trouble;
  }
  if (!arguments.versus.empty()) {
    TW_TRY(auto baselines, measure::parse_baselines(arguments.versus));
    options.baselines = std::move(baselines);
  }
  return options;
}

}  // namespace

void describe_bench(CLI::App& app, BenchArguments& arguments) {
  CLI::App* bench = app.add_subcommand("bench", "Measure averaging and joining on this machine");
  bench->require_subcommand(1);
  bench->footer("docs/benchmarks.md has the results.");
  CLI::App* command = bench->add_subcommand("reduce", "Measure how long peers take to average a vector");
  command->add_option("--peers", arguments.peers, "processes, 2 to 64; default: 2, or the hosts of TOPOLOGY");
  command->add_option("--bytes", arguments.bytes, "size of the vector of floats, such as 64MiB or 256MB")
      ->capture_default_str();
  command->add_option("--codec", arguments.codec, "what crosses the wire: fp32, fp16, bf16, int8, int4")
      ->capture_default_str();
  command->add_option("--wan", arguments.topology,
                      "TOPOLOGY: emulate this network, a peer on each host (needs root)");
  command->add_option("--vs", arguments.versus,
                      "gloo,gloo-ring,openmpi,butterfly: measure these in turns (make bench)");
  command->add_option("--streams", arguments.streams,
                      "data streams between two peers at most; default: as many as help");
  command
      ->add_option("--sites", arguments.sites,
                   "auto, flat or tree: whether each site of TOPOLOGY averages first")
      ->capture_default_str();
  command->add_option("--rounds", arguments.rounds, "measured rounds of each turn")->capture_default_str();
  command->add_option("--warm-up", arguments.warm_up, "rounds before the measured ones")
      ->capture_default_str();
  command->add_option("--turns", arguments.turns, "how often all processes start anew")
      ->capture_default_str();
  command->add_option("--kill", arguments.kill,
                      "PEER@FRACTION or leader@FRACTION: SIGKILL at this part of one more round");
  command->add_option("--stop", arguments.stop,
                      "like --kill, with SIGSTOP; SIGCONT once the others have the round");
  command->add_option("--disturb", arguments.disturb,
                      "busy@20s, link@20s or stop@20s: disturb six more rounds");
  command->add_flag("--tls", arguments.tls,
                    "encrypt tradewind's links, as in a run; the systems of --vs never do");
  command->add_flag("--json", arguments.json, "print JSON on stdout; docs/benchmarks.md has the keys");
  command->footer(
      "Starts the peers, each a process with a whole session: members, leases, plan, averaging, commit.\n"
      "Their model has a known gradient and costs nothing; filling the vectors and updates are not\n"
      "measured.\n"
      "  seconds    from the plan's call (or the release of the round, if that is later) until the last\n"
      "             peer holds the whole mean; median\n"
      "  bound      with --wan what its hosts and sites can send and receive: no all-reduce is faster; on\n"
      "             the loopback as many bytes with plain sockets, in turns\n"
      "  CPU s/GB   of all peers, from call to commit, for each GB that they sent\n"
      "--kill counts from the call, in units of the usual time. --disturb: busy runs two busy loops, link\n"
      "cuts the links of the first site to a tenth, stop sends SIGSTOP to the last peer.\n"
      "\n"
      "Examples:\n"
      "  tw bench reduce --peers 2 --bytes 256MB\n"
      "  tw bench reduce --peers 4 --codec fp16 --vs gloo,openmpi --turns 3\n"
      "  tw bench reduce --wan hetero4 --vs gloo,openmpi --turns 3\n"
      "  tw bench reduce --peers 4 --kill leader@0.5 --json\n"
      "  tw bench reduce --wan hetero4 --disturb link@20s --vs gloo");
  describe_bench_join(*bench, arguments.join);
  describe_bench_peer(*bench, arguments.peer);
}

int run_bench(const BenchArguments& arguments, const std::string& command) {
  if (command == "peer") return bench_peer(arguments.peer);
  if (command == "join") return bench_join(arguments.join);
  const auto options = options_of(arguments);
  if (!options) return complain(options.error().message, kUsage);
  measure::watch_interrupts();
  const auto result = reduce(options.value(), show_aside);
  if (measure::interrupted()) return kInterrupted;
  if (!result) return complain(result.error().message, kFailed);
  print_out("{}", arguments.json ? to_json(result.value()) : render(result.value()));
  const auto& box = result.value().box;
  if (box && !box->limited_by.empty())
    return complain("the box that carries the packets was the limit for " + box->limited_by +
                        "; measure on a quieter machine or a slower topology",
                    kFailed);
  if (!result.value().identical) return complain("means differ: " + result.value().difference, kFailed);
  return kDone;
}

}  // namespace tw::cli
