// SPDX-License-Identifier: Apache-2.0
//
// Goodput of a run on machines that come and go by a trace: what `tw sim --trace-spot` tells, for several
// numbers of peers, beside the same run with nobody going.
//   bench_goodput TRACES.csv --trace-id ID... [--peers N...] [--hours H] [--from H] [--notice S] ...
// One line of JSON for each trace and number of peers.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>

#include "measure.h"
#include "sim/scenarios/what_if.h"

namespace {

using namespace tw;

struct Settings {
  std::string file;
  std::vector<std::string> ids{""};
  std::vector<int> peers{8, 16, 32, 64};
  double hours = 4, from_h = 0, notice_s = 0;
  bool text = false;
  sim::WhatIf what;
};

void describe(CLI::App& app, Settings& settings) {
  sim::WhatIf& what = settings.what;
  app.add_option("FILE", settings.file, "traces (docs/simulation.md)")->required();
  app.add_option("--trace-id", settings.ids, "of the file's traces; a final * means all with this beginning");
  app.add_option("--peers", settings.peers, "spot machines at most")->capture_default_str();
  app.add_option("--hours", settings.hours, "of the trace")->capture_default_str();
  app.add_option("--from", settings.from_h, "hour of the trace")->capture_default_str();
  app.add_option("--notice", settings.notice_s, "seconds; 0: machines vanish")->capture_default_str();
  app.add_option("--anchors", what.anchors, "machines that never go")->capture_default_str();
  app.add_option("--parameters", what.parameters, "of the model")->capture_default_str();
  app.add_option("--samples-per-s", what.samples_per_s, "of a machine")->capture_default_str();
  app.add_option("--tbs", what.target_batch_size, "samples of a round")->capture_default_str();
  app.add_option("--microbatch", what.microbatch, "samples")->capture_default_str();
  app.add_option("--link-mbit", what.link_mbit, "of a machine")->capture_default_str();
  app.add_option("--rtt-ms", what.rtt_ms, "between machines")->capture_default_str();
  app.add_option("--seed", what.seed, "of the run")->capture_default_str();
  app.add_flag("--text", settings.text, "tables instead");
}

/// The same run without losses, up to its last commit: the goodput that averaging allows.
double undisturbed(sim::WhatIf what, int peers) {
  what.lifetimes.clear();
  what.anchors += peers;
  what.length = std::min<Duration>(what.length, std::chrono::minutes(15));
  const sim::WhatIfReport report = what_if(what);
  if (report.strength.empty()) return 0;
  const double to_last_commit = report.strength.back().at_s / to_seconds(report.simulated);
  return report.goodput / to_last_commit;
}

int run(const Settings& settings, const std::vector<sim::Trace>& traces, const std::string& id, int peers) {
  sim::WhatIf what = settings.what;
  what.length = from_seconds(3600 * settings.hours);
  what.notice = from_seconds(settings.notice_s);
  what.lifetimes = lifetimes_in(traces, {peers, from_seconds(3600 * settings.from_h), what.length, 1});
  const double begin = bench::wall_seconds();
  const sim::WhatIfReport report = what_if(what);
  const double wall = bench::wall_seconds() - begin;
  if (settings.text) {
    fmt::print("{} x {}\n{}\n", id, peers, to_string(what, report));
    return report.violations.empty() ? 0 : 1;
  }
  const sim::LostShares& lost = report.lost;
  fmt::print(R"({{"trace": "{}", "peers": {}, "hours": {:.2f}, "goodput": {:.4f}, "undisturbed": {:.4f}, )"
             R"("joining": {:.4f}, "averaging": {:.4f}, "recomputed": {:.4f}, "leaving": {:.4f}, )"
             R"("waiting": {:.4f}, )",
             id, peers, to_seconds(report.simulated) / 3600, report.goodput, undisturbed(what, peers),
             lost.joining, lost.averaging, lost.recomputed, lost.leaving, lost.waiting);
  fmt::print(R"("rounds": {}, "rounds_lost": {}, "losses": {}, "leaves": {}, "members": {:.1f}, )"
             R"("recover_s_median": {:.1f}, "recover_s_worst": {:.1f}, "violations": {}, "events": {}, )"
             R"("wall_s": {:.1f}}})"
             "\n",
             report.rounds, report.rounds_lost, report.losses, report.leaves, report.members_mean,
             report.recover_s_median, report.recover_s_worst, report.violations.size(), report.events, wall);
  std::fflush(stdout);
  for (const std::string& violation : report.violations) fmt::print(stderr, "{}\n", violation);
  return report.violations.empty() && report.rounds_lost == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Goodput on machines that come and go");
  Settings settings;
  describe(app, settings);
  CLI11_PARSE(app, argc, argv);
  std::ifstream file(settings.file);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  int code = 0;
  for (const std::string& id : settings.ids) {
    const tw::Result<std::vector<tw::sim::Trace>> traces = tw::sim::read_traces(settings.file, text, id);
    if (!traces.ok()) {
      fmt::print(stderr, "{}\n", traces.error().message);
      return 2;
    }
    for (const int peers : settings.peers) code = std::max(code, run(settings, traces.value(), id, peers));
  }
  return code;
}
