// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>

#include "plan/fit/calibration.h"
#include "plan/model/throughput.h"

namespace tw::plan {
namespace {

std::string text_of(const std::string& name) {
  std::ifstream file(std::string(TW_REFERENCE_DIR) + "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Judged {
  const MeasuredRun* run;
  Prediction prediction;

  double error(Estimate Prediction::*what, double MeasuredRun::*measured) const {
    return std::abs((prediction.*what).value / (run->*measured) - 1);
  }

  double throughput_error() const { return error(&Prediction::throughput_sps, &MeasuredRun::throughput_sps); }

  double comm_error() const { return error(&Prediction::comm_s, &MeasuredRun::comm_s); }

  double sent_error() const {
    return error(&Prediction::sent_mb_per_peer_round, &MeasuredRun::sent_mb_per_peer);
  }
};

using Measure = double (Judged::*)() const;

double mean(const std::vector<Judged>& runs, Measure error) {
  double sum = 0;
  for (const Judged& run : runs) sum += (run.*error)();
  return sum / static_cast<double>(runs.size());
}

double worst(const std::vector<Judged>& runs, Measure error) {
  double most = 0;
  for (const Judged& run : runs) most = std::max(most, (run.*error)());
  return most;
}

/// Share of the pairs of runs whose throughputs are predicted in the right order.
double ranked_right(const std::vector<Judged>& runs) {
  int right = 0, pairs = 0;
  for (const Judged& a : runs) {
    for (const Judged& b : runs) {
      if (!(a.run->throughput_sps < b.run->throughput_sps)) continue;
      ++pairs;
      if (a.prediction.throughput_sps.value < b.prediction.throughput_sps.value) ++right;
    }
  }
  return pairs > 0 ? static_cast<double>(right) / pairs : 1;
}

std::vector<std::string> wrong_by(const std::vector<Judged>& runs, double error) {
  std::vector<std::string> names;
  for (const Judged& run : runs)
    if (run.throughput_error() > error) names.push_back(run.run->id);
  return names;
}

double within_range(const std::vector<Judged>& runs, Estimate Prediction::*what,
                    double MeasuredRun::*measured) {
  int inside = 0;
  for (const Judged& run : runs) {
    const Estimate& range = run.prediction.*what;
    if (run.run->*measured >= range.low && run.run->*measured <= range.high) ++inside;
  }
  return static_cast<double>(inside) / static_cast<double>(runs.size());
}

class HivemindReference : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto read = read_measured_runs("experiments.csv", text_of("experiments.csv"));
    ASSERT_TRUE(read.ok()) << read.error().message;
    for (MeasuredRun& run : read.value())
      if (run.clean) runs_.push_back(std::move(run));
  }

  /// Each run, predicted by speeds and a law fitted without the runs for which `together` is true.
  template <class Together>
  static std::vector<Judged> left_out(Together together) {
    std::vector<Judged> judged;
    for (const MeasuredRun& run : runs_) {
      std::vector<MeasuredRun> rest;
      for (const MeasuredRun& other : runs_)
        if (!together(run, other)) rest.push_back(other);
      const Models models = models_from(rest, Models::built_in());
      const HivemindLaw law =
          law_from(rest, models, market::NetworkProfile::built_in(), HivemindLaw::built_in());
      const Knowledge knowledge{.hivemind = law};
      const Workload workload{.model = models.find(run.model).value(),
                              .target_batch_size = run.target_batch_size,
                              .pattern = Pattern::hivemind};
      judged.push_back({&run, predict(workload, run.peers, knowledge).value()});
    }
    return judged;
  }

  static std::vector<Judged> some(const std::vector<Judged>& all, const std::string& families) {
    std::vector<Judged> chosen;
    for (const Judged& run : all)
      if (families.find(run.run->family.substr(0, 1)) != std::string::npos) chosen.push_back(run);
    return chosen;
  }

  static void print(const char* head, const std::vector<Judged>& all) {
    fmt::print(
        "{}\n| family | runs | throughput error, mean | worst | comm mean | worst | sent mean | worst | "
        "ranked right |\n"
        "|---|---|---|---|---|---|---|---|---|\n",
        head);
    for (const char* families : {"L", "A", "B", "C", "D", "W", "E", "F", "LABCDW", "EF", "LABCDWEF"}) {
      const std::vector<Judged> runs = some(all, families);
      fmt::print("| {} | {} | {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} % |\n",
                 families, runs.size(), 100 * mean(runs, &Judged::throughput_error),
                 100 * worst(runs, &Judged::throughput_error), 100 * mean(runs, &Judged::comm_error),
                 100 * worst(runs, &Judged::comm_error), 100 * mean(runs, &Judged::sent_error),
                 100 * worst(runs, &Judged::sent_error), 100 * ranked_right(runs));
    }
  }

  static inline std::vector<MeasuredRun> runs_;
};

TEST_F(HivemindReference, each_run_is_predicted_by_what_the_others_tell) {
  const std::vector<Judged> all =
      left_out([](const MeasuredRun& run, const MeasuredRun& other) { return &run == &other; });
  print("leave one out", all);
  for (const Judged& run : all) {
    if (run.throughput_error() > 0.08)
      fmt::print("{}: {:.1f} samples/s, predicted {:.1f}; averaging {:.1f} s, predicted {:.1f}\n",
                 run.run->id, run.run->throughput_sps, run.prediction.throughput_sps.value, run.run->comm_s,
                 run.prediction.comm_s.value);
  }
  const std::vector<Judged> clouds = some(all, "LABCDW");
  EXPECT_LE(mean(clouds, &Judged::throughput_error), 0.03);
  EXPECT_LE(mean(clouds, &Judged::comm_error), 0.08);
  EXPECT_EQ(wrong_by(clouds, 0.1), std::vector<std::string>{});
  for (const char* family : {"E", "F"})
    EXPECT_LE(mean(some(all, family), &Judged::throughput_error), 0.15) << family;
  EXPECT_LE(mean(all, &Judged::sent_error), 0.05);
  EXPECT_GE(ranked_right(all), 0.93);
  for (const char* families : {"LA", "BCD", "EF", "W"}) {
    const std::vector<Judged> runs = some(all, families);
    fmt::print("{}: within the 80 % range: throughput {:.0f} %, averaging {:.0f} %, sent {:.0f} %\n",
               families, 100 * within_range(runs, &Prediction::throughput_sps, &MeasuredRun::throughput_sps),
               100 * within_range(runs, &Prediction::comm_s, &MeasuredRun::comm_s),
               100 * within_range(runs, &Prediction::sent_mb_per_peer_round, &MeasuredRun::sent_mb_per_peer));
  }
}

TEST_F(HivemindReference, a_whole_family_is_predicted_by_what_the_others_tell) {
  const std::vector<Judged> all =
      left_out([](const MeasuredRun& run, const MeasuredRun& other) { return run.family == other.family; });
  print("leave one family out", all);
}

}  // namespace
}  // namespace tw::plan
