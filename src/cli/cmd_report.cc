// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "cli/commands.h"
#include "cli/plan/run_prices.h"
#include "cli/terminal/terminal.h"
#include "cli/watch/stored_logs.h"
#include "host/store/s3_place.h"
#include "host/store/store_files.h"
#include "host/system/calendar.h"
#include "host/system/temporary_folder.h"
#include "monitor/logs/log_follower.h"
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

/// The same error, of the logs where the user has them. here: a copy of them; empty: there is none.
Error named(Error error, const std::string& here, const std::string& folder) {
  for (std::size_t at; !here.empty() && (at = error.message.find(here)) != std::string::npos;)
    error.message.replace(at, here.size(), folder);
  return error;
}

/// Logs of a store are copied to a folder first, and stay as long as they are read.
class ReportedLogs final : public monitor::LogSource {
 public:
  static Result<ReportedLogs> open(const std::string& folder) {
    ReportedLogs logs(folder);
    if (host::is_s3(folder)) {
      logs.here_ = std::make_unique<host::TemporaryFolder>();
      host::StoreFiles store({.attempts = 3, .patience = 1min, .silence = 10s});
      TW_TRY(fetch_logs(store, folder, logs.here_->path()));
    }
    auto read = monitor::LogFollower::of_whole_logs(logs.here_ ? logs.here_->path() : folder);
    if (!read) return named(read.error(), logs.copy(), folder);
    logs.logs_ = std::move(read).value();
    return logs;
  }

  Status each(const monitor::Phases& wanted, const Take& take) const override {
    const Status read = logs_.each(wanted, take);
    if (read) return read;
    is_at_fault_ = true;
    return named(read.error(), copy(), folder_);
  }

  const monitor::LogFollower& logs() const { return logs_; }

  /// A log could not be read, or broke off in a line that is none.
  bool is_at_fault() const { return is_at_fault_; }

 private:
  explicit ReportedLogs(std::string folder) : folder_(std::move(folder)), logs_("") {}

  std::string copy() const { return here_ ? here_->path() : ""; }

  std::string folder_;
  std::unique_ptr<host::TemporaryFolder> here_;
  monitor::LogFollower logs_;
  mutable bool is_at_fault_ = false;
};

int export_run(const Exports& exports, const ReportedLogs& logs, const monitor::JournalOptions& options) {
  const auto written = write_exports(exports, logs, options);
  if (!written) return complain(written.error().message, logs.is_at_fault() ? kUsage : kFailed);
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
  const auto run = ReportedLogs::open(arguments.folder);
  if (!run) return complain(run.error().message, kUsage);
  const ReportedLogs& logs = run.value();
  if (const std::string left_out = logs.logs().left_out(); !left_out.empty())
    warn(arguments.folder + ": " + left_out);
  const auto prices = prices_for(arguments.folder, arguments.plan, logs.logs().writers());
  if (!prices) return complain(prices.error().message, kUsage);
  // The price of a plan goes before those of events.
  const monitor::JournalOptions options{.usd_per_h = prices.value(),
                                        .keeps_to_usd_per_h = !arguments.plan.empty()};
  if (arguments.exports.any()) return export_run(arguments.exports, logs, options);
  const auto summary = summarize(logs, options, {.now_s = static_cast<double>(host::now_unix_s())});
  if (!summary) return complain(summary.error().message, kUsage);
  print_out("{}", arguments.json ? to_json(summary.value()) : render(summary.value()));
  return kDone;
}

}  // namespace tw::cli
