// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "plan/fit/measured_run.h"
#include "plan/model/cost.h"
#include "plan/model/test_tables.h"

/// Cost of a million samples of ConvNextLarge by Erben et al. 2024, as printed and recalculated.
namespace tw::plan {
namespace {

using testing_tables::read_text;
using testing_tables::require_table;

constexpr double kTargetBatchSize = 32768;

struct Machines {
  const char* name;
  const char* peers;
  const char* baseline;  ///< row of baselines.csv, for machines that train alone
  const char* run;       ///< row of experiments.csv
  double printed_usd;    ///< per million samples; sections 3 and 7
};

constexpr Machines kMachines[] = {{"1xT4", "1xT4@gc:us", "baseline-75", "", 0.619},
                                  {"1xA10", "1xA10@lambda:us-west", "baseline-192", "", 0.898},
                                  {"DGX-2", "1xDGX2-8xV100@gc:us", "baseline-119", "", 4.24},
                                  {"8xT4", "8xT4@gc:us", "", "CV A-8", 1.77},
                                  {"8xA10", "8xA10@lambda:us-west", "", "L-8-CONV-32K", 2.15}};

Cost cost(const Machines& machines) {
  const Workload workload{.model = Models::built_in().find("CONV").value(),
                          .target_batch_size = kTargetBatchSize,
                          .pattern = Pattern::hivemind};
  const auto peers = parse_peers(machines.peers).value();
  return cost_of(workload, peers, predict(workload, peers).value());
}

/// VMs only, per million samples, with the printed throughput and with that by the wall clock.
struct VmUsd {
  double quoted = 0;
  double wall = 0;
};

VmUsd baseline(const std::string& name) {
  for (CsvRow row : require_table("baselines.csv")) {
    if (row.text("run") == name)
      return {row.number("price_usd_h") / row.number("sps_quoted") / 3600e-6,
              row.number("price_usd_h") / row.number("sps_wall") / 3600e-6};
  }
  ADD_FAILURE() << name;
  return {};
}

MeasuredRun run(const std::string& id) {
  const auto runs =
      read_measured_runs("experiments.csv", read_text(TW_REFERENCE_DIR "/experiments.csv")).value();
  return *std::find_if(runs.begin(), runs.end(), [&](const MeasuredRun& each) { return each.id == id; });
}

TEST(ErbenCosts, alone_are_as_printed_by_their_throughput_and_as_they_are_by_the_clock) {
  for (const Machines& machines : kMachines) {
    if (*machines.baseline == 0) continue;
    const VmUsd vm = baseline(machines.baseline);
    const Cost c = cost(machines);
    const double per_hour = c.usd_per_million_samples->value / c.total_usd_per_h->value;
    EXPECT_NEAR(vm.quoted, machines.printed_usd, 0.005) << machines.name;
    EXPECT_NEAR(c.vm_usd_per_h->value * per_hour, vm.wall, 0.015 * vm.wall) << machines.name;
    fmt::print("| {} | {:.2f} | {:.2f} | {:.2f} | 0 | {:.2f} | **{:.2f}** | |\n", machines.name,
               machines.printed_usd, vm.quoted, c.vm_usd_per_h->value * per_hour,
               c.data_usd_per_h.value * per_hour, c.usd_per_million_samples->value);
  }
}

TEST(ErbenCosts, of_clusters_are_those_measured_with_all_egress_and_data) {
  for (const Machines& machines : kMachines) {
    if (*machines.run == 0) continue;
    const MeasuredRun measured = run(machines.run);
    const Cost c = cost(machines);
    const double vm_alone = measured.vm_usd_per_h / measured.throughput_sps / 3600e-6;
    const double per_hour = c.usd_per_million_samples->value / c.total_usd_per_h->value;
    EXPECT_NEAR(c.vm_usd_per_h->value, measured.vm_usd_per_h, 1e-9) << machines.name;
    EXPECT_NEAR(c.egress_usd_per_h.value, measured.egress_usd_per_h, 0.03 * measured.egress_usd_per_h);
    EXPECT_NEAR(c.data_usd_per_h.value, measured.data_usd_per_h, 0.07 * measured.data_usd_per_h)
        << machines.name;
    EXPECT_NEAR(c.usd_per_million_samples->value, measured.usd_per_million_samples,
                0.03 * measured.usd_per_million_samples)
        << machines.name;
    fmt::print("| {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | **{:.2f}** | {:.2f} |\n", machines.name,
               machines.printed_usd, vm_alone, c.vm_usd_per_h->value * per_hour,
               c.egress_usd_per_h.value * per_hour, c.data_usd_per_h.value * per_hour,
               c.usd_per_million_samples->value, measured.usd_per_million_samples);
  }
}

// Section 7: 8 T4 are 58 % cheaper and 37 % slower than the DGX-2, 8 A10 49 % cheaper and 50 % faster. By the
// wall clock, with all egress and data, the A10 win and the T4 save little.
TEST(ErbenCosts, savings_over_the_dgx_2) {
  const double dgx_quoted = baseline("baseline-119").quoted;
  EXPECT_NEAR(1 - 1.77 / dgx_quoted, 0.58, 0.005);
  EXPECT_NEAR(1 - 8 * 0.6 / 620.58 / 3600e-6 / dgx_quoted, 0.492, 0.005);
  const double dgx = cost(kMachines[2]).usd_per_million_samples->value;
  const double t4 = cost(kMachines[3]).usd_per_million_samples->value;
  const double a10 = cost(kMachines[4]).usd_per_million_samples->value;
  fmt::print("over the DGX-2, all counted: 8xT4 save {:.0f} %, 8xA10 {:.0f} %\n", 100 * (1 - t4 / dgx),
             100 * (1 - a10 / dgx));
  EXPECT_LT(a10, t4);
  EXPECT_LT(t4, dgx);
}

}  // namespace
}  // namespace tw::plan
