// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>

#include "base/result.h"
#include "cli/commands.h"
#include "cli/plan/run_prices.h"
#include "cli/terminal/terminal.h"
#include "cli/watch/stored_logs.h"
#include "host/store/s3_place.h"
#include "host/store/store_files.h"
#include "host/system/calendar.h"
#include "host/system/temporary_folder.h"
#include "monitor/logs/event_log_json.h"
#include "monitor/logs/newest_run.h"
#include "monitor/report/report.h"
#include "monitor/report/report_text.h"
#include "monitor/report/summary_json.h"

namespace tw::cli {

void describe_report(CLI::App& app, ReportArguments& arguments) {
  CLI::App* command = app.add_subcommand("report", "Summarize a run from its event logs");
  command
      ->add_option("LOGS", arguments.folder,
                   "folder with event logs, one log, or s3://BUCKET/PREFIX of checkpoint.to")
      ->required();
  command->add_option("--plan", arguments.plan,
                      "PLAN.yaml with the one price of all machines; default: the prices in the logs");
  command->add_option("--trace", arguments.exports.trace,
                      "write FILE in Chrome's trace format, for Perfetto or speedscope");
  command->add_option("--csv", arguments.exports.csv,
                      "write CSV tables of rounds, peers, links and more into this folder");
  command->add_option("--tensorboard", arguments.exports.tensorboard,
                      "write an event file for TensorBoard into this folder");
  command->add_option("--html", arguments.exports.html, "write FILE: a page of the run that needs no server");
  command->add_option("--samples", arguments.exports.samples,
                      "write FILE.csv: the samples of each round; fails if one was used twice");
  command->add_flag("--json", arguments.json, "print summary.json");
  command->footer(
      "The run may be over, killed or still going on. Copy the logs of several machines into one folder.\n"
      "Cost: hours in the logs by the price of each machine (tw run --usd-per-h, tw up, --plan), and bytes\n"
      "between sites by their tariffs, where these are known.\n"
      "--trace, --csv, --tensorboard, --html and --samples name what they wrote, and print no report.\n"
      "\n"
      "Examples:\n"
      "  tw report tw-out\n"
      "  tw report tw-out --json | jq .lost\n"
      "  tw report ~/.local/state/tradewind/mnist/logs\n"
      "  tw report s3://bucket/run\n"
      "  tw report logs --plan PLAN.yaml\n"
      "  tw report tw-out --trace run.json --csv tables --tensorboard runs/tw\n"
      "  tw report tw-out --html run.html\n"
      "  tw report tw-out --samples samples.csv");
}

namespace {

using namespace std::chrono_literals;
using Logs = std::vector<std::vector<monitor::LogEntry>>;

Result<monitor::RunLogs> read_logs(const std::string& folder) {
  if (!host::is_s3(folder)) return monitor::read_newest_run(folder);
  const host::TemporaryFolder here;
  host::StoreFiles store({.attempts = 3, .patience = 1min, .silence = 10s});
  TW_TRY(fetch_logs(store, folder, here.path()));
  auto logs = monitor::read_newest_run(here.path());
  if (logs) return logs;
  std::string message = logs.error().message;
  for (std::size_t at; (at = message.find(here.path())) != std::string::npos;)
    message.replace(at, here.path().size(), folder);
  return Error{std::move(message)};
}

/// The price of a plan goes before those of events.
void forget_prices(Logs& logs) {
  for (std::vector<monitor::LogEntry>& log : logs)
    for (monitor::LogEntry& entry : log)
      if (auto* start = std::get_if<event::Start>(&entry.event.fact)) start->usd_per_h.reset();
}

int export_run(const Exports& exports, const Logs& logs, const PeerPrices& prices) {
  const auto written = write_exports(exports, logs, {.usd_per_h = prices});
  if (!written) return complain(written.error().message, kFailed);
  for (const std::string& path : written.value()) print_out("{}\n", path);
  return kDone;
}

}  // namespace

int report(const ReportArguments& arguments) {
  if (arguments.json && arguments.exports.any())
    return complain(
        "--json: prints the report; --trace, --csv, --tensorboard, --html and --samples write files instead; "
        "give one of the two",
        kUsage);
  auto run = read_logs(arguments.folder);
  if (!run) return complain(run.error().message, kUsage);
  if (!run.value().left_out.empty()) warn(arguments.folder + ": " + run.value().left_out);
  Logs& logs = run.value().logs;
  const auto prices = prices_for(arguments.folder, arguments.plan, writers_of(logs));
  if (!prices) return complain(prices.error().message, kUsage);
  if (!arguments.plan.empty()) forget_prices(logs);
  if (arguments.exports.any()) return export_run(arguments.exports, logs, prices.value());
  const monitor::Summary summary =
      summarize(logs, {.usd_per_h = prices.value()}, {.now_s = static_cast<double>(host::now_unix_s())});
  print_out("{}", arguments.json ? to_json(summary) : render(summary));
  return kDone;
}

}  // namespace tw::cli
