// SPDX-License-Identifier: Apache-2.0
//
// The published experiments of Erben et al., VLDB 2024, simulated in their Hivemind configuration and held
// against what was measured. docs/benchmarks.md says how, and where it misses.
//   bench_paper FOLDER [--families A,B,C,D] [--rounds 5] [--fit] [--folds 10] [--tradewind STREAMS]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/median.h"
#include "measure.h"
#include "paper_fit.h"
#include "paper_tradewind.h"

namespace tw::bench {
namespace {

struct Errors {
  std::vector<double> throughput, granularity;
};

double worst_of(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

void print_costs(const studies::HivemindCosts& costs, double passes) {
  fmt::print(
      "handling {:.5f} s/MB, rendezvous {:.5f} s/tensor/peer, update {:.3f} s + {:.5f} s/M, stream gain "
      "{:.3f}, on premises {:.3f}, fast host {:.3f}, passes {:.1f}\n",
      costs.handling_s_per_mb, costs.rendezvous_s_per_tensor, costs.update_s, costs.update_s_per_m_params,
      costs.stream_gain, costs.on_premises_gain, costs.fast_host, passes);
}

void print_errors(const std::map<std::string, Errors>& families) {
  fmt::print(
      "\n| family | runs | throughput error, median | worst | granularity error, median | worst |\n"
      "|---|---|---|---|---|---|\n");
  for (const auto& [family, errors] : families) {
    fmt::print("| {} | {} | {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} % |\n", family, errors.throughput.size(),
               100 * median(errors.throughput), 100 * worst_of(errors.throughput),
               100 * median(errors.granularity), 100 * worst_of(errors.granularity));
  }
}

/// Each run with the constants that the other folds gave.
struct Judged {
  const studies::PublishedRun* run;
  studies::HivemindFigures figures;
};

void print_runs(const std::vector<Judged>& all) {
  std::map<std::string, Errors> families;
  fmt::print(
      "\n| run | samples/s measured | simulated | error | averaging s | simulated | granularity | "
      "simulated |\n|---|---|---|---|---|---|---|---|\n");
  for (const auto& [run, figures] : all) {
    const double error = figures.samples_per_s / run->samples_per_s - 1;
    fmt::print("| {} | {:.1f} | {:.1f} | {:+.1f} % | {:.1f} | {:.1f} | {:.2f} | {:.2f} |\n", run->id,
               run->samples_per_s, figures.samples_per_s, 100 * error, run->communication_s,
               figures.communication_s, run->granularity, figures.granularity());
    families[run->group].throughput.push_back(std::abs(error));
    families[run->group].granularity.push_back(std::abs(figures.granularity() / run->granularity - 1));
  }
  print_errors(families);
}

std::vector<Judged> cross_validate(const studies::Reference& reference, const Runs& runs,
                                   const studies::HivemindCosts& start, std::size_t folds) {
  std::vector<Judged> judged;
  for (std::size_t fold = 0; fold < folds; ++fold) {
    Runs kept, left_out;
    for (std::size_t i = 0; i < runs.size(); ++i) (i % folds == fold ? left_out : kept).push_back(runs[i]);
    const auto [costs, passes] = fit_all(reference, kept, start);
    for (const studies::PublishedRun* run : left_out) {
      judged.push_back({run, simulate(reference, *run, costs, 5, passes)});
    }
    fmt::print("fold {}: ", fold + 1);
    print_costs(costs, passes);
  }
  return judged;
}

/// Both ways to know a speed beforehand, on the runs where both can be judged.
void print_speed_errors(const studies::Reference& reference, const Runs& runs, double passes) {
  std::vector<double> baseline, others;
  for (const studies::PublishedRun* run : runs) {
    if (run->peers.front().gpu != run->peers.back().gpu) continue;
    const std::string& gpu = run->peers.front().gpu;
    const std::optional<double> known = speed_from_others(reference, *run, gpu);
    const std::optional<double> scaled = speed_from_baseline(reference, *run, gpu, passes);
    if (!known || !scaled) continue;
    const double measured = run->local_samples_per_s / count_of(run->peers);
    others.push_back(std::abs(*known / measured - 1));
    baseline.push_back(std::abs(*scaled / measured - 1));
  }
  fmt::print(
      "accumulation speed of {} runs: from other runs median error {:.1f} %, worst {:.1f} %; from the "
      "baseline {:.1f} %, worst {:.1f} %\n",
      others.size(), 100 * median(others), 100 * worst_of(others), 100 * median(baseline),
      100 * worst_of(baseline));
}

struct Options {
  std::string folder;
  std::vector<std::string> families{"A", "B", "C", "D"};
  std::vector<std::string> fitted{"A", "B", "C", "D", "E", "F", "Lambda"};
  int rounds = 5;
  bool fit = false;
  std::size_t folds = 0;
  std::vector<int> tradewind;
  std::string only;
};

/// tradewind's round, with the time that Hivemind takes for its parameter update on top: the simulator's
/// takes none.
void print_tradewind(const studies::Reference& reference, const studies::PublishedRun& run,
                     const Options& options) {
  const studies::HivemindCosts costs;
  studies::HivemindRun machines = hivemind_run(reference, run, costs).value();
  machines.rounds = options.rounds;
  const double update_s = costs.update_s + costs.update_s_per_m_params * run.params_m;
  for (const int streams : options.tradewind) {
    const std::optional<TradewindFigures> figures = simulate_tradewind(machines, streams);
    if (!figures) {
      fmt::print("| {} | {} | no end within a day | | | | |\n", run.id, streams);
      continue;
    }
    const double samples_per_s = static_cast<double>(run.target_batch_size) / (figures->round_s + update_s);
    fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.2f} |\n", run.id, streams,
               run.communication_s, figures->communication_s + update_s, run.samples_per_s, samples_per_s,
               samples_per_s / run.samples_per_s);
    std::fflush(stdout);
  }
}

int report_tradewind(const studies::Reference& reference, const Runs& runs, const Options& options) {
  fmt::print(
      "| run | streams | Hivemind measured: averaging s | tradewind simulated | samples/s measured | "
      "tradewind simulated | gain |\n|---|---|---|---|---|---|---|\n");
  for (const studies::PublishedRun* run : runs) {
    if (options.only.empty() || run->id == options.only) print_tradewind(reference, *run, options);
  }
  return 0;
}

Runs clean_runs(const studies::Reference& reference, const std::vector<std::string>& families) {
  Runs runs;
  for (const studies::PublishedRun& run : reference.runs) {
    const bool wanted = std::find(families.begin(), families.end(), run.group) != families.end();
    if (wanted && run.clean && hivemind_run(reference, run, {}).ok()) runs.push_back(&run);
  }
  return runs;
}

int report(const Options& options) {
  const Result<studies::Reference> reference = studies::read_reference(options.folder);
  if (!reference) {
    fmt::print(stderr, "{}\n", reference.error().message);
    return 1;
  }
  studies::HivemindCosts costs;
  const Runs fitted = clean_runs(reference.value(), options.fitted);
  if (options.folds > 0) {
    print_runs(cross_validate(reference.value(), fitted, costs, options.folds));
    return 0;
  }
  if (!options.tradewind.empty()) {
    return report_tradewind(reference.value(), clean_runs(reference.value(), options.families), options);
  }
  double passes = studies::kAccumulationPasses;
  if (options.fit) {
    std::tie(costs, passes) = fit_all(reference.value(), fitted, costs);
  }
  print_costs(costs, passes);
  print_speed_errors(reference.value(), fitted, passes);
  std::vector<Judged> judged;
  for (const studies::PublishedRun* run : clean_runs(reference.value(), options.families)) {
    judged.push_back({run, simulate(reference.value(), *run, costs, options.rounds, passes)});
  }
  print_runs(judged);
  return 0;
}

}  // namespace
}  // namespace tw::bench

int main(int argc, char** argv) {
  CLI::App app("The experiments of Erben et al., VLDB 2024, simulated");
  tw::bench::Options options;
  app.add_option("folder", options.folder, "the reference tables (experiments.csv and others)")->required();
  app.add_option("--families", options.families, "to report")->delimiter(',')->capture_default_str();
  app.add_option("--rounds", options.rounds, "of each run")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("--fit", options.fit, "fit the constants anew to the clean runs of A to D and Lambda");
  app.add_option("--folds", options.folds,
                 "judge each run of A to D and Lambda by constants fitted without its fold");
  app.add_option("--tradewind", options.tradewind,
                 "tradewind's protocol instead, with so many TCP streams a pair")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--only", options.only, "with --tradewind: this run alone");
  CLI11_PARSE(app, argc, argv);
  return tw::bench::report(options);
}
