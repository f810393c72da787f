// SPDX-License-Identifier: Apache-2.0
#include "plan/model/round_time.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tw::plan {
namespace {

/// Four hosts, a site each, 1 ms apart, at the rates that iperf3 found on the emulated networks equal4 and
/// hetero4 (docs/benchmarks.md).
struct Bed {
  market::NetworkProfile network;
  std::vector<PeerGroup> peers;
};

Bed bed_of(const std::vector<double>& mbit_s) {
  Bed bed;
  std::vector<market::Site> sites;
  for (std::size_t host = 0; host < mbit_s.size(); ++host) {
    sites.push_back({"bed", std::string(1, static_cast<char>('a' + host)), ""});
    bed.peers.push_back({1, "none", sites.back()});
  }
  for (std::size_t from = 0; from < sites.size(); ++from) {
    for (std::size_t to = 0; to < sites.size(); ++to) {
      const double rate = std::min(mbit_s[from], mbit_s[to]) * 1e6 / 8;
      bed.network.set(sites[from], sites[to],
                      {.rtt_s = 1.1e-3, .stream_bytes_per_s = rate, .path_bytes_per_s = rate});
    }
  }
  return bed;
}

struct Measured {
  const char* what;
  std::vector<double> mbit_s;
  double params_m;
  double bytes_per_param;
  double seconds;     ///< tw bench reduce, 2026-11-22 (docs/benchmarks.md)
  double most_error;  ///< of the prediction
};

constexpr double kInt8 = 1 + 2.0 / 256;
constexpr double kMiB = 1.048576;

/// Predicted time without the update, which the measurement lacks.
double predicted_s(const Measured& one) {
  const Bed bed = bed_of(one.mbit_s);
  const Workload workload{.model = {.name = "vector", .params_m = one.params_m},
                          .bytes_per_param = one.bytes_per_param};
  return derived_round(workload, bed.peers, {.network = bed.network}).comm_s -
         round_parts(workload, 0, 0, 0).update_s;
}

TEST(RoundTime, of_tradewind_is_that_measured_on_emulated_networks) {
  const std::vector<double> equal4(4, 495.7);
  const std::vector<double> hetero4{988.8, 988.8, 198.8, 198.8};
  const Measured kMeasured[] = {{"equal4, 64 MiB, fp32", equal4, 16 * kMiB, 4, 1.641, 0.03},
                                {"hetero4, 64 MiB, fp32", hetero4, 16 * kMiB, 4, 2.758, 0.03},
                                {"hetero4, 64 MiB, fp32, again", hetero4, 16 * kMiB, 4, 2.740, 0.03},
                                {"hetero4, 256 MiB, int8", hetero4, 64 * kMiB, kInt8, 2.748, 0.03},
                                {"hetero4, 64 MiB, int8", hetero4, 16 * kMiB, kInt8, 0.869, 0.20}};
  for (const Measured& one : kMeasured) {
    const double error = predicted_s(one) / one.seconds - 1;
    EXPECT_LE(std::abs(error), one.most_error) << one.what;
    fmt::print("| {} | {:.3f} | {:.3f} | {:+.1f} % |\n", one.what, one.seconds, predicted_s(one),
               100 * error);
  }
}

}  // namespace
}  // namespace tw::plan
