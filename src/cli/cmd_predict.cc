// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <set>

#include "base/text/text_file.h"
#include "cli/commands.h"
#include "cli/terminal/terminal.h"
#include "cli/watch/frozen_file.h"
#include "market/region_name.h"
#include "plan/input/cluster_yaml.h"
#include "plan/output/prediction_csv.h"
#include "plan/output/prediction_json.h"
#include "plan/output/prediction_modes.h"
#include "plan/output/prediction_sweep.h"
#include "plan/output/prediction_text.h"

namespace tw::cli {
namespace {

int predict_sweep(const PredictArguments& arguments, const plan::Workload& workload,
                  const std::vector<plan::PeerGroup>& peers, const plan::Prices& prices) {
  const auto range = plan::parse_sweep(arguments.sweep);
  if (!range) return complain("--sweep " + range.error().message, kUsage);
  const auto points = sweep(workload, peers, range.value(), prices);
  if (!points) return complain(arguments.cluster + ": " + points.error().message, kUsage);
  print_out("{}", arguments.json ? to_json(workload, points.value()) : to_text(workload, points.value()));
  return kDone;
}

int predict_each_mode(const PredictArguments& arguments, const plan::Workload& workload,
                      const plan::ClusterFile& cluster) {
  const auto points = predict_modes(cluster, workload, cluster.peers);
  if (!points) return complain(arguments.cluster + ": " + points.error().message, kUsage);
  print_out("{}", arguments.json ? to_json(points.value()) : to_text(points.value()));
  return kDone;
}

/// The price of an area counts for all names in it, misspelt ones, too.
void note_unknown_regions(const std::vector<plan::PeerGroup>& peers, const plan::Prices& prices,
                          plan::Cost& cost) {
  std::set<std::string> notes;
  for (const plan::PeerGroup& group : peers)
    if (const auto offer = offer_for(group, prices))
      notes.insert(market::unknown_region_note(group.site, *offer));
  notes.erase("");
  cost.assumptions.insert(cost.assumptions.end(), notes.begin(), notes.end());
}

int predict_cluster(const PredictArguments& arguments) {
  const auto text = read_text_file(arguments.cluster, kMostYamlBytes);
  if (!text) return complain(text.error().message, kUsage);
  auto cluster = plan::read_cluster(arguments.cluster, text.value());
  if (!cluster) return complain(cluster.error().message, kUsage);
  if (!arguments.pattern.empty()) {
    const auto pattern = plan::parse_pattern(arguments.pattern);
    if (!pattern) return complain("--pattern " + pattern.error().message, kUsage);
    cluster.value().pattern = pattern.value();
  }
  if (arguments.modes) cluster.value().mode = "sync";  // that of the file is one of the rows
  const auto workload = workload_of(cluster.value(), arguments.cluster);
  if (!workload) return complain(workload.error().message, kUsage);
  std::vector<plan::PeerGroup>& peers = cluster.value().peers;
  const auto at_hand = price_sources(arguments.market);
  if (!at_hand) return complain(at_hand.error().message, kUsage);
  const plan::Prices prices{.own = cluster.value().own_prices,
                            .offers = at_hand.value().offers,
                            .data = cluster.value().data,
                            .purchases = cluster.value().purchases};
  for (plan::PeerGroup& group : peers)
    if (const auto offer = offer_for(group, prices)) group.gpu_memory_gib = offer->gpu_memory_gib;
  if (!arguments.sweep.empty()) return predict_sweep(arguments, workload.value(), peers, prices);
  if (arguments.modes) return predict_each_mode(arguments, workload.value(), cluster.value());
  const auto prediction = predict(workload.value(), peers);
  if (!prediction) return complain(arguments.cluster + ": " + prediction.error().message, kUsage);
  plan::Cost cost = cost_of(workload.value(), peers, prediction.value(), prices);
  note_unknown_regions(peers, prices, cost);
  if (!arguments.html.empty()) {
    const Status done =
        write_dated_page(arguments.html, monitor::PageKind::predict, "prediction: " + to_string(peers),
                         page_fields(workload.value(), peers, prediction.value(), cost, prices));
    if (!done) return complain("--html " + done.error().message, kFailed);
  }
  print_out("{}", arguments.json ? to_json(prediction.value(), cost)
                                 : to_text(workload.value(), peers, prediction.value(), cost));
  return kDone;
}

int predict_batch(const PredictArguments& arguments) {
  const auto pattern = plan::parse_pattern(arguments.pattern.empty() ? "hivemind" : arguments.pattern);
  if (!pattern) return complain("--pattern " + pattern.error().message, kUsage);
  const auto text = read_text_file(arguments.batch);
  if (!text) return complain("--batch " + text.error().message, kUsage);
  const plan::Workload like{.pattern = pattern.value()};
  const auto at_hand = price_sources(arguments.market);
  if (!at_hand) return complain(at_hand.error().message, kUsage);
  const auto rows = predict_rows(arguments.batch, text.value(), like, plan::Models::built_in(),
                                 {.offers = at_hand.value().offers});
  if (!rows) return complain("--batch " + rows.error().message, kUsage);
  print_out("{}", rows.value());
  return kDone;
}

}  // namespace

void describe_predict(CLI::App& app, PredictArguments& arguments) {
  CLI::App* command = app.add_subcommand("predict", "Predict speed, bottleneck and cost of a cluster");
  command->add_option("CLUSTER", arguments.cluster, "YAML: model, tbs, peers and more (docs/planner.md)");
  command->add_option("--batch", arguments.batch,
                      "CSV with the columns exp_id,model,tbs,peers, instead of CLUSTER");
  command->add_option("--pattern", arguments.pattern,
                      "tradewind, tradewind-sites, hivemind, ring or parameter-server");
  command->add_flag("--json", arguments.json, "one object instead of a table");
  command->add_option("--sweep", arguments.sweep,
                      "peers=1..64: a row for each number of peers, and up to which number they pay");
  command->add_flag("--modes", arguments.modes,
                    "a row for each training.mode and number of samples a round, and which to take");
  command->add_option("--html", arguments.html, "FILE: write the prediction as a page with sliders");
  describe_market(*command, arguments.market);
  command->footer(
      "With --batch a row is printed for each row; the columns ..._low and ..._high are the 80 % range.\n"
      "Exit codes: 0 predicted, 1 a file cannot be written, 2 wrong usage or input.\n"
      "How good predictions are, and when not to believe them: docs/planner.md\n"
      "\nExamples:\n  tw predict examples/cluster.yaml\n  tw predict --batch clusters.csv --pattern "
      "hivemind\n  tw predict examples/cluster.yaml --sweep peers=1..64\n"
      "  tw predict examples/cluster.yaml --modes");
}

int predict(const PredictArguments& arguments) {
  if (arguments.cluster.empty() == arguments.batch.empty())
    return complain("predict: expected CLUSTER.yaml or --batch FILE.csv; see: tw predict --help", kUsage);
  if (!arguments.html.empty() && arguments.cluster.empty())
    return complain(fmt::format("--html {}: is for one CLUSTER.yaml, not for --batch", arguments.html),
                    kUsage);
  if (!arguments.sweep.empty() && (arguments.cluster.empty() || !arguments.html.empty()))
    return complain(
        fmt::format("--sweep {}: goes with one CLUSTER.yaml, without --batch and --html", arguments.sweep),
        kUsage);
  if (arguments.modes && (arguments.cluster.empty() || !arguments.html.empty() || !arguments.sweep.empty()))
    return complain("--modes: goes with one CLUSTER.yaml, without --batch, --html and --sweep", kUsage);
  return arguments.batch.empty() ? predict_cluster(arguments) : predict_batch(arguments);
}

}  // namespace tw::cli
