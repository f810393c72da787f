// SPDX-License-Identifier: Apache-2.0
#include "plan/fit/measured_run.h"

#include "base/result.h"
#include "base/text/csv.h"

namespace tw::plan {
namespace {

bool is_clean(const std::string& flags) {
  return flags.empty() || flags == "azure_net_counters_doubled_halved_here";
}

}  // namespace

Result<std::vector<MeasuredRun>> read_measured_runs(const std::string& file, std::string_view text) {
  TW_TRY(const auto table,
         CsvTable::parse(file, text,
                         {"exp_id", "group", "model", "tbs", "peers", "samples_per_epoch", "global_sps",
                          "local_sps", "calc_wall_s", "comm_s", "sent_mb_per_peer_epoch", "flags"}));
  std::vector<MeasuredRun> runs;
  for (std::size_t i = 0; i < table.size(); ++i) {
    CsvRow row = table.row(i);
    auto peers = parse_peers(row.word("peers"));
    if (!peers) row.complain("peers", "groups such as 4xT4@gc:us, joined by ;");
    MeasuredRun run;
    run.id = row.word("exp_id");
    run.family = row.word("group");
    run.model = row.word("model");
    run.target_batch_size = row.number("tbs", {.least = 1});
    run.clean = is_clean(row.text("flags"));
    run.samples_per_round = row.number("samples_per_epoch", {.least = 1});
    run.throughput_sps = row.number("global_sps", {.least = 1e-9});
    run.local_sps = row.number("local_sps", {.least = 1e-9});
    run.calc_s = row.number("calc_wall_s", {.least = 1e-9});
    run.comm_s = row.number("comm_s", {.least = 1e-9});
    run.sent_mb_per_peer = row.number("sent_mb_per_peer_epoch", {.least = 0});
    run.vm_usd_per_h = row.number_or("vm_usd_h", 0);
    run.egress_usd_per_h = row.number_or("egress_usd_h", 0);
    run.data_usd_per_h = row.number_or("dataload_usd_h", 0);
    run.usd_per_million_samples = row.number_or("usd_per_1m", 0);
    if (!row.status()) return row.status().error();
    run.peers = std::move(peers).value();
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace tw::plan
