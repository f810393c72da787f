// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "base/text/option.h"
#include "cli/arguments/arguments.h"
#include "cli/commands.h"
#include "cli/plan/catalog_price.h"
#include "cli/run/out_folder.h"
#include "cli/terminal/terminal.h"
#include "cli/watch/watched.h"
#include "host/identity/authority.h"
#include "host/loop.h"
#include "launch/local/child.h"
#include "launch/local/local_run.h"
#include "launch/local/script.h"
#include "monitor/logs/event_log_json.h"
#include "monitor/report/report.h"
#include "monitor/report/report_text.h"
#include "monitor/report/summary_json.h"
#include "peer/token_file.h"
#include "peer/values.h"
#include "train/run/run_file_yaml.h"

namespace tw::cli {

namespace {

Status parse_script(const LocalArguments& arguments, Round rounds, launch::LocalOptions& options) {
  for (const std::string& text : arguments.join) {
    const auto round = parse_count("--join", text, {.least = 1, .most = rounds});
    if (!round) return round.error();
    options.joins.push_back(round.value());
  }
  const std::uint64_t all = options.peers + options.joins.size();
  if (all > launch::kMaxLocalPeers)
    return Error{
        fmt::format("--join: {} peers and {} joining ones are more than the {} that one machine may run",
                    options.peers, options.joins.size(), launch::kMaxLocalPeers)};
  for (const std::string& text : arguments.kill) {
    const auto kill = launch::parse_kill(text);
    if (!kill) return kill.error();
    if (kill.value().victim && kill.value().victim->value > all)
      return Error{fmt::format("--kill {}: there are peers 1 to {}, for example --kill {}@{}", text, all, all,
                               kill.value().round)};
    if (kill.value().round > rounds)
      return Error{fmt::format("--kill {}: the run has {} rounds, for example --kill {}", text, rounds,
                               to_string(launch::Kill{.victim = kill.value().victim, .round = rounds}))};
    options.kills.push_back(kill.value());
  }
  return Unit{};
}

Result<launch::LocalOptions> options_of(const LocalArguments& arguments) {
  launch::LocalOptions options{
      .run_file = arguments.run_file, .out = arguments.out, .settings = arguments.set};
  const auto peers = parse_count("--peers", arguments.peers, {.least = 1, .most = launch::kMaxLocalPeers});
  if (!peers) return peers.error();
  options.peers = peers.value();

  std::vector<std::pair<std::string, std::string>> overrides;
  for (const std::string& text : arguments.set) {
    auto setting = parse_setting(text);
    if (!setting) return setting.error();
    overrides.push_back(std::move(setting).value());
  }
  const auto run = train::read_run_file(arguments.run_file, overrides);
  if (!run) return run.error();
  if (const Status parsed = parse_script(arguments, run.value().rounds, options); !parsed)
    return parsed.error();

  auto price = price_text(arguments.usd_per_h, arguments.site);
  if (!price) return price.error();
  options.usd_per_h = std::move(price).value();
  auto site = peer::parse_site_option("--site", arguments.site);
  if (!site) return site.error();
  options.site = std::move(site).value();
  const auto log_limits = peer::parse_log_limit("--log-limit", arguments.log_limit);
  if (!log_limits) return log_limits.error();
  options.log_limit = arguments.log_limit;
  const std::uint64_t cores = std::max(1U, std::thread::hardware_concurrency());
  options.threads = std::max<std::uint64_t>(1, cores / options.peers);
  if (!arguments.threads.empty()) {
    const auto threads = parse_count("--threads", arguments.threads, {.least = 1, .most = 1024});
    if (!threads) return threads.error();
    options.threads = threads.value();
  }
  return options;
}

constexpr std::int64_t kLocalTokenLasts_s = 30LL * 86400;

/// A token for this run alone, in its folder: more peers may join with it by hand.
Status make_token(const LocalArguments& arguments, launch::LocalOptions& options) {
  if (arguments.insecure) return Unit{};
  options.token = peer::token_file(arguments.out);
  return host::write_secret_file(options.token,
                                 to_text(host::token_for_one_run("local", kLocalTokenLasts_s)) + "\n");
}

int report_on(const LocalArguments& arguments, launch::LocalOutcome outcome) {
  const auto logs = monitor::read_event_logs(arguments.out);
  if (!logs) return complain(logs.error().message, kFailed);
  const monitor::Summary summary = summarize(logs.value());
  if (const Status written = write_summary(arguments.out, summary); !written)
    outcome.failures.push_back(written.error().message);
  if (summary.rounds > 0 && !summary.identical)
    outcome.failures.push_back("parameters differ: " + summary.difference);
  if (arguments.json) {
    print_out("{}", to_json(summary));
  } else {
    print_out("\n{}\nevent logs and summary.json: {}\n", render(summary), arguments.out);
  }
  for (const std::string& failure : outcome.failures) complain(failure, kFailed);
  if (outcome.interrupted) return kInterrupted;
  if (!outcome.failures.empty()) return kFailed;
  return outcome.goes_on ? kGoesOn : kDone;
}

}  // namespace

void describe_local(CLI::App& app, LocalArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("local", "Run N peer processes on this machine; kill some, let others join");
  command->add_option("RUN.yaml", arguments.run_file, "what is trained")->required();
  command->add_option("--peers", arguments.peers, "how many peers begin, 1 to 64; their ids count from 1")
      ->required();
  command
      ->add_option(
          "--out", arguments.out,
          "folder for event logs, summary.json and the token of the run; one of a run of before is emptied")
      ->capture_default_str();
  command->add_option("--log-limit", arguments.log_limit, "of each peer, as for tw train")
      ->capture_default_str();
  command
      ->add_option("--kill", arguments.kill,
                   "PEER@ROUND or leader@ROUND: SIGKILL in the middle of this round")
      ->allow_extra_args(false);
  command->add_option("--join", arguments.join, "ROUND: another peer is started when this round begins")
      ->allow_extra_args(false);
  command->add_option("--threads", arguments.threads,
                      "threads of calculation of each peer; default: cores / peers");
  command->add_option("--usd-per-h", arguments.usd_per_h,
                      "price of each peer, USD an hour, or catalog[:TYPE], as for tw train");
  command->add_option("--site", arguments.site, "PROVIDER:REGION:ZONE of all peers");
  command->add_option("--set", arguments.set, "KEY=VALUE, wins over the run file")->allow_extra_args(false);
  command->add_flag("--insecure", arguments.insecure, "no TLS between the peers");
  command->add_option("--watch", arguments.watch,
                      "HOST:PORT where browsers see the run, such as 127.0.0.1:8080; port 0: any free one");
  command->add_flag("--json", arguments.json, "print summary.json on stdout, everything else on stderr");
  command->footer(
      "Ctrl-C: the peers hand in what is done and leave; twice: they are killed. SIGTERM: the same, as a "
      "notice; "
      "exit code 75.\n"
      "\nExamples:\n"
      "  tw local examples/mnist.yaml --peers 4\n"
      "  tw local examples/mnist.yaml --peers 4 --kill 2@10 --join 20\n"
      "  tw local examples/mnist.yaml --peers 4 --watch 127.0.0.1:8080 --usd-per-h 0.3\n"
      "  tw local examples/mnist.yaml --peers 3 --kill leader@5 --set training.rounds=20 --json | jq .lost");
}

int local(const LocalArguments& arguments) {
  auto options = options_of(arguments);
  if (!options) return complain(options.error().message, kUsage);
  if (const Status emptied = empty_out_folder(arguments.out); !emptied)
    return complain(emptied.error().message, kUsage);
  if (const Status made = make_token(arguments, options.value()); !made)
    return complain(made.error().message, kFailed);

  host::Loop loop;
  auto watched = watch_folder(loop, arguments.out, arguments.watch);
  if (!watched) return complain(watched.error().message, kUsage);
  launch::LocalRun run(loop, options.value(), arguments.json ? show_aside : show_news);
  return report_on(arguments, run.run());
}

}  // namespace tw::cli
