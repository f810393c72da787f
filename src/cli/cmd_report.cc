// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "monitor/event_log_json.h"
#include "monitor/report.h"
#include "monitor/report_text.h"
#include "monitor/summary_json.h"

namespace tw::cli {

void describe_report(CLI::App& app, ReportArguments& arguments) {
  CLI::App* command = app.add_subcommand("report", "Tell what happened in a run, from its event logs");
  command->add_option("DIR", arguments.folder, "folder with events-*.jsonl, of all peers or of some")
      ->required();
  command->add_flag("--json", arguments.json, "what summary.json holds");
  command->footer(
      "The run may be over, killed or still going on. Logs of several machines: copy them into one folder.\n"
      "\nExamples:\n  tw report tw-out\n  tw report tw-out --json | jq .lost");
}

int report(const ReportArguments& arguments) {
  const auto logs = monitor::read_event_logs(arguments.folder);
  if (!logs) return complain(logs.error().message, kUsage);
  const monitor::Summary summary = summarize(logs.value());
  print_out("{}", arguments.json ? to_json(summary) : render(summary));
  return kDone;
}

}  // namespace tw::cli
