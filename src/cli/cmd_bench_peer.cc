// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/run/peer_process.h"
#include "host/system/calendar.h"
#include "host/system/random_os.h"
#include "measure/bench/arguments.h"
#include "measure/bench/trainer.h"
#include "peer/token_file.h"

namespace tw::cli {
namespace {

constexpr Round kBetweenCheckpoints = 20;

}  // namespace

void describe_bench_peer(CLI::App& bench, BenchPeerArguments& arguments) {
  CLI::App* command = bench.add_subcommand("peer", "One peer; `tw bench reduce` starts it");
  command->group("");  // not in the help
  command->add_option("--id", arguments.id)->required();
  command->add_option("--peers", arguments.peers)->required();
  command->add_option("--bytes", arguments.bytes)->required();
  command->add_option("--codec", arguments.codec)->required();
  command->add_option("--rounds", arguments.rounds)->required();
  command->add_option("--board", arguments.board);
  command->add_option("--streams", arguments.streams);
  command->add_option("--work-ms", arguments.work_ms);
  command->add_flag("--adamw", arguments.adamw);
  command->add_option("--out", arguments.out)->required();
  command->add_option("--listen", arguments.listen)->required();
  command->add_option("--site", arguments.site);
  command->add_option("--sites", arguments.sites);
  command->add_option("--join", arguments.join);
  command->add_option("--token", arguments.token);
  command->add_option("--checkpoints", arguments.checkpoints);
  command->add_flag("--progress", arguments.progress);
}

int bench_peer(const BenchPeerArguments& arguments) {
  const auto codec = measure::parse_codec(arguments.codec);
  if (!codec) return complain(codec.error().message, kUsage);
  const auto sites = measure::parse_site_use(arguments.sites);
  if (!sites) return complain(sites.error().message, kUsage);
  measure::MappedBoard board;
  if (!arguments.board.empty()) {
    auto mapped = measure::map_board(arguments.board);
    if (!mapped) return complain(mapped.error().message, kFailed);
    board = std::move(mapped).value();
  }
  peer::Options options{.session = {.self = PeerId{arguments.id},
                                    .incarnation = host::OsRandom().next(),
                                    .site = arguments.site,
                                    .listen = arguments.listen,
                                    .join = arguments.join,
                                    .wait_for = static_cast<std::uint32_t>(arguments.peers),
                                    .run = measure::run_of(arguments.peers, codec.value(), arguments.rounds)},
                        .out = arguments.out,
                        .most_streams = static_cast<int>(arguments.streams)};
  if (!arguments.token.empty()) {
    const auto token = peer::read_token("--token", arguments.token, warn);
    if (!token) return complain(token.error().message, kUsage);
    auto tls = host::Tls::open(token.value(), host::now_unix_s());
    if (!tls) return complain(tls.error().message, kFailed);
    options.tls = std::move(tls).value();
  }
  options.session.run.sites = sites.value();
  if (arguments.adamw) options.session.run.optimizer = {};
  if (!arguments.checkpoints.empty())
    options.session.run.checkpoint = {.folder = arguments.checkpoints, .every = kBetweenCheckpoints};
  auto model = std::make_unique<measure::GradientTrainer>(
      measure::GradientTrainer::Options{.self = PeerId{arguments.id},
                                        .parameters = arguments.bytes / sizeof(float),
                                        .run = options.session.run,
                                        .board = board.get(),
                                        .work = std::chrono::milliseconds(arguments.work_ms)});
  measure::GradientTrainer& observer = *model;
  return PeerProcess(std::move(options), !arguments.progress, std::move(model), &observer).run();
}

}  // namespace tw::cli
