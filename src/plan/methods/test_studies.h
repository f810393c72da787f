// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/median.h"
#include "plan/methods/deepvm.h"
#include "plan/methods/spotdnn.h"
#include "plan/methods/transient.h"
#include "plan/model/test_tables.h"

/// Inputs of the published planners and studies, from the tables in planner/, for tests.
namespace tw::plan::testing_tables {

inline double mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// A run of Li et al. 2019 on transient K80 with one parameter server.
struct K80Run {
  TransientRun run;  ///< inputs of the model
  double measured_s = 0;
  double measured_usd = 0;  ///< 0: not in the table
  std::string zone{};
  bool in_table = false;  ///< measured_s is in the table; false: it follows from the master's uptime
};

/// From the start of the VM to that of the training, by number of workers (median; special_cases.csv).
inline double start_offset_s(int workers) {
  return std::map<int, double>{{2, 296}, {4, 324}, {8, 444}}.at(workers);
}

/// All runs with this many K80 in which the master survived; undisturbed_s is measured by those without a
/// loss. Runs that transient_runs_with_revocations.csv leaves out get their time from the master's uptime.
inline std::vector<K80Run> k80_runs(int workers) {
  using Name = std::tuple<std::string, std::string>;  // zone and number
  std::map<Name, K80Run> runs;
  for (CsvRow row : require_table("planner/transient_cluster_vm_records.csv")) {
    if (row.text("gpu") != "K80" || row.text("cluster") != fmt::format("{}-spot", workers)) continue;
    K80Run& one = runs[{row.word("zone"), row.word("run")}];
    one.run.workers = workers;
    const double trained_s = row.number("uptime_s") - start_offset_s(workers);
    if (row.text("end_reason") == "Revoked") one.run.lost_at_s.push_back(trained_s);
    if (row.text("role") == "master" && row.text("end_reason").starts_with("Job")) one.measured_s = trained_s;
  }
  std::vector<double> undisturbed;
  for (CsvRow row : require_table("planner/transient_runs_with_revocations.csv")) {
    if (row.text("gpus") != fmt::format("{}xK80", workers)) continue;
    K80Run& one = runs[{row.word("zone"), row.word("run")}];
    one.in_table = true;
    one.measured_s = row.number("duration_s");
    one.measured_usd = row.number("cost_usd");
    if (one.run.lost_at_s.empty()) undisturbed.push_back(one.measured_s);
  }
  std::vector<K80Run> finished;
  for (auto& [name, one] : runs) {
    one.zone = std::get<0>(name);
    one.run.undisturbed_s = median(undisturbed);
    if (one.measured_s > 0) finished.push_back(one);
  }
  return finished;
}

inline double usd_per_s(const std::string& item, const std::string& purchase) {
  for (CsvRow row : require_table("planner/gce_2019_prices.csv"))
    if (row.text("item") == item && row.text("purchase") == purchase) return row.number("usd_per_second");
  ADD_FAILURE() << "no price of " << item;
  return 0;
}

inline TransientPrices k80_prices() {
  return {.worker_usd_per_s = usd_per_s("1xK80 worker", "transient"),
          .server_usd_per_s = usd_per_s("parameter server", "any")};
}

/// Seconds of runs of a configuration without losses, from transient_config_summary.csv.
inline double measured_s(const std::string& gpus, int servers, const std::string& placement = "same-region",
                         const std::string& purchase = "transient") {
  for (CsvRow row : require_table("planner/transient_config_summary.csv"))
    if (row.text("gpus") == gpus && row.count("parameter_servers") == servers &&
        row.text("placement") == placement && row.text("purchase") == purchase)
      return row.number("duration_s_mean");
  ADD_FAILURE() << "no row of " << gpus;
  return 0;
}

inline double one_k80_usd() {
  return measured_s("1xK80", 0, "same-region", "on_demand") * usd_per_s("1xK80 worker", "on_demand");
}

inline void add_machine(CsvRow row, DeepVmMarket& market) {
  if (row.word("role") == "worker")
    market.workers.push_back(
        {.name = row.word("name"),
         .quota_class = row.word("quota_class"),
         .vcpus = row.count("vcpu"),
         .network_gbps = row.number("network_gbps"),
         .flops_score = row.number("flops_score"),
         .on_demand_usd_h = row.number("on_demand_usd_h"),
         .spot_usd_h = row.number("spot_usd_h"),
         .speed = {.a = row.number("sigmoid_a"), .b = row.number("sigmoid_b"), .c = row.number("sigmoid_c")},
         .measured_s = {}});
  else
    market.anchors.push_back({.name = row.word("name"),
                              .quota_class = row.word("quota_class"),
                              .vcpus = row.count("vcpu"),
                              .network_gbps = row.number("network_gbps"),
                              .memory_gib = row.number("memory_gib"),
                              .on_demand_usd_h = row.number("on_demand_usd_h")});
}

/// DeepVM's market, aws_real or synthetic. The publication's simulated market has no quotas.
inline DeepVmMarket deepvm_market(const std::string& dataset) {
  DeepVmMarket market;
  market.single_anchor_wins_ties = dataset == "synthetic";
  const Table instances = require_table("planner/deepvm_instances.csv");
  for (CsvRow row : instances)
    if (row.text("dataset") == dataset) add_machine(row, market);
  for (CsvRow row : require_table("planner/deepvm_saturation_table.csv"))
    market.saturation[row.number("min_network_gbps")] = row.count("n_sat_workers_per_anchor");
  if (dataset == "synthetic") return market;
  for (CsvRow row : require_table("planner/deepvm_quotas.csv"))
    if (row.text("dataset") == dataset)
      market.quotas[row.word("quota_class")] = {row.count("on_demand_vcpu"), row.count("spot_vcpu")};
  for (CsvRow row : require_table("planner/deepvm_measured_scaling.csv"))
    for (GpuMachine& worker : market.workers)
      if (worker.name == row.text("worker"))
        worker.measured_s[row.count("n")] = row.number("training_time_s");
  return market;
}

inline SpotDnnModel spotdnn_model() {
  std::map<std::string, double> values;
  for (CsvRow row : require_table("planner/spotdnn_code_constants.csv"))
    values[row.word("name")] = row.number("value");
  return {.gradient_mb = values.at("S_param_mb"),
          .worker_mb_s = values.at("B_req_mb_s"),
          .server_mb_s = values.at("B_ps_mb_s"),
          .pcie_mb_s = values.at("B_pcie_mb_s"),
          .alpha1 = values.at("alpha1"),
          .beta1 = values.at("beta1"),
          .gamma1 = values.at("gamma1"),
          .gamma2 = values.at("gamma2"),
          .gamma3 = values.at("gamma3"),
          .gamma5 = values.at("gamma5")};
}

inline std::vector<SpotDnnInstance> spotdnn_instances() {
  std::vector<SpotDnnInstance> instances;
  for (CsvRow row : require_table("planner/spotdnn_code_profile.csv"))
    instances.push_back({.name = row.word("instance").substr(0, row.text("instance").find(' ')),
                         .gpus = row.count("gpus"),
                         .quota = row.count("quota"),
                         .usd_per_h = row.number("spot_usd_h"),
                         .samples_per_s = row.number("samples_per_s"),
                         .batch_per_gpu = row.count("batch_per_gpu")});
  return instances;
}

}  // namespace tw::plan::testing_tables
