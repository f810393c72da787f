// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "average/reduction/geometry.h"
#include "base/result.h"
#include "codec/codec.h"
#include "host/system/temporary_folder.h"
#include "measure/bench/pump.h"
#include "measure/testbed/baselines.h"
#include "measure/testbed/crew.h"
#include "measure/testbed/testbed.h"
#include "measure/testbed/trouble.h"
#include "swarm/shares/bound.h"

namespace tw::measure {
namespace {

constexpr Duration kPumpTime = std::chrono::milliseconds(500);
/// First rounds under a disturbance, not counted for any system.
constexpr Round kUnderDropped = 2;
constexpr Round kBaselineRoundsUnder = 4;

/// Measurements over all turns.
struct Totals {
  std::vector<double> under_s, after_s;
  std::map<std::string, BaselineTimes> baselines_under;
  std::vector<double> seconds, committed_s, cpu_s_per_gb, disturbed_s, pumped, pump_cpu;
  std::vector<double> call_s, sums_s, mean_s, commit_s, kernel_s_per_gb, peak_memory;
  std::map<PeerId, std::vector<double>> bytes_sent;
  std::map<std::string, BaselineTimes> baselines;
  bool identical = true;
  std::string difference;
};

void add(Totals& totals, const CrewOutcome& outcome) {
  for (const RoundTimes& round : outcome.rounds) {
    double sent = 0;
    for (const auto& [peer, bytes] : round.bytes_sent) {
      sent += bytes;
      totals.bytes_sent[peer].push_back(bytes);
    }
    totals.seconds.push_back(round.mean_s);
    totals.committed_s.push_back(round.commit_s);
    totals.cpu_s_per_gb.push_back(round.cpu_s / (sent / 1e9));
    totals.call_s.push_back(round.call_s);
    totals.sums_s.push_back(std::max(0.0, round.sums_s - round.call_s));
    totals.mean_s.push_back(std::max(0.0, round.mean_s - std::max(round.sums_s, round.call_s)));
    totals.commit_s.push_back(round.commit_s - round.mean_s);
    totals.kernel_s_per_gb.push_back(round.kernel_s / (sent / 1e9));
    totals.peak_memory.push_back(round.peak_memory);
  }
  totals.under_s.insert(totals.under_s.end(), outcome.under_s.begin(), outcome.under_s.end());
  totals.after_s.insert(totals.after_s.end(), outcome.after_s.begin(), outcome.after_s.end());
  if (outcome.disturbed) totals.disturbed_s.push_back(outcome.disturbed->commit_s);
  if (outcome.identical || !totals.identical) return;
  totals.identical = false;
  totals.difference = outcome.difference;
}

/// Where the systems of a turn run.
struct Ground {
  std::vector<Host> hosts;
  const Testbed* testbed = nullptr;  ///< null: the loopback
};

Result<CrewOutcome> crew_turn(const ReduceOptions& options, const Ground& ground) {
  const host::TemporaryFolder folder;
  Trouble trouble(options.trouble.value_or(TroubleTime{}).kind, folder.path(), ground.testbed);
  std::vector<std::string> more;
  if (options.streams != 0) more = {"--streams", std::to_string(options.streams)};
  more.insert(more.end(),
              {"--sites", std::string(swarm::kSiteUseNames[static_cast<std::size_t>(options.sites)])});
  Crew crew({.hosts = ground.hosts,
             .bytes = options.bytes,
             .codec = options.codec,
             .warm_up = options.warm_up,
             .rounds = options.rounds,
             .tls = options.tls,
             .disturbance = options.disturbance,
             .trouble = options.trouble,
             .more = more,
             .folder = folder.path()},
            &trouble);
  return crew.run();
}

Status baseline_turn(const std::string& baseline, const ReduceOptions& options, const Ground& ground,
                     BaselineTimes& all) {
  const host::TemporaryFolder folder;
  TW_TRY(auto times, run_baseline(baseline, {.hosts = ground.hosts,
                                             .bytes = options.bytes,
                                             .warm_up = static_cast<int>(options.warm_up),
                                             .rounds = static_cast<int>(options.rounds),
                                             .folder = folder.path()}));
  all.seconds.insert(all.seconds.end(), times.seconds.begin(), times.seconds.end());
  all.cpu_s.insert(all.cpu_s.end(), times.cpu_s.begin(), times.cpu_s.end());
  return Unit{};
}

/// The same under trouble that lasts from its start to its end. A stopped rank would stop all others.
Status baseline_turn_under_trouble(const std::string& baseline, ReduceOptions options, const Ground& ground,
                                   BaselineTimes& all) {
  const host::TemporaryFolder folder;
  Trouble trouble(options.trouble->kind, folder.path(), ground.testbed);
  options.warm_up = std::min<Round>(options.warm_up, kUnderDropped);
  options.rounds = std::min<Round>(options.rounds, kBaselineRoundsUnder);
  const Status begun = trouble.begin();
  const Status taken = begun ? baseline_turn(baseline, options, ground, all) : begun;
  const Status ended = trouble.end();
  return taken ? ended : taken;
}

Status take_turn(const ReduceOptions& options, const Ground& ground, Totals& totals) {
  if (options.topology.empty()) {
    TW_TRY(const auto pumped, pump_loopback(static_cast<int>(ground.hosts.size()), kPumpTime));
    totals.pumped.push_back(pumped.bytes_per_s);
    totals.pump_cpu.push_back(pumped.cpu_s_per_gb);
  }
  TW_TRY(const auto outcome, crew_turn(options, ground));
  add(totals, outcome);
  for (const std::string& baseline : options.baselines) {
    if (const Status taken = baseline_turn(baseline, options, ground, totals.baselines[baseline]); !taken)
      return taken;
    if (!options.trouble || options.trouble->kind == TroubleKind::stop) continue;
    const Status under =
        baseline_turn_under_trouble(baseline, options, ground, totals.baselines_under[baseline]);
    if (!under) return under;
  }
  return Unit{};
}

/// Everybody has an equal part of what plain sockets carry.
std::vector<swarm::Participant> loopback_lines(std::size_t peers, double bytes_per_s) {
  std::vector<swarm::Participant> participants;
  const double part = bytes_per_s / static_cast<double>(peers);
  for (std::size_t i = 0; i < peers; ++i)
    participants.push_back({.peer = PeerId{i + 1}, .bandwidth = {part, part, {}}});
  return participants;
}

SystemTimes times_over(const std::vector<double>& seconds, double cpu_s_per_gb) {
  return {median(seconds), *std::min_element(seconds.begin(), seconds.end()),
          *std::max_element(seconds.begin(), seconds.end()), cpu_s_per_gb};
}

/// Wire bytes of a vector, the mean of both ways: contributions and results may differ.
std::uint64_t wire_bytes(const ReduceOptions& options) {
  const average::Geometry geometry{.length = options.bytes / sizeof(float)};
  return (encoded_bytes(options.codec, geometry) + encoded_bytes(codec_of_mean(options.codec), geometry)) / 2;
}

std::string describe(const Disturbance& disturbance) {
  return fmt::format("--{} {}@{:g}", disturbance.kind == Disturbance::Kind::kill ? "kill" : "stop",
                     disturbance.victim ? to_string(*disturbance.victim) : "leader", disturbance.fraction);
}

double steady(const std::vector<double>& under_s) {
  const std::size_t dropped = std::min<std::size_t>(kUnderDropped, under_s.size() - 1);
  return median({under_s.begin() + static_cast<std::ptrdiff_t>(dropped), under_s.end()});
}

TroubleTimes trouble_times(const TroubleTime& trouble, const Totals& totals) {
  TroubleTimes times{.what = "--disturb " + to_string(trouble),
                     .before_s = median(totals.seconds),
                     .steady_s = steady(totals.under_s),
                     .under_s = totals.under_s,
                     .after_s = totals.after_s};
  for (const auto& [baseline, under] : totals.baselines_under)
    times.baselines_slowdown[baseline] =
        median(under.seconds) / median(totals.baselines.at(baseline).seconds);
  return times;
}

void fill(BenchResult& result, const ReduceOptions& options, const Totals& totals) {
  result.tradewind = times_over(totals.seconds, median(totals.cpu_s_per_gb));
  for (const auto& [peer, bytes] : totals.bytes_sent) {
    result.bytes_sent.push_back(median(bytes));
    result.bytes_sent_per_peer += median(bytes) / static_cast<double>(result.peers);
  }
  // Every all-reduce of fp32 has to move so much.
  const double gb = 2 * static_cast<double>(result.peers - 1) * static_cast<double>(options.bytes) / 1e9;
  for (const auto& [baseline, times] : totals.baselines)
    result.baselines[baseline] = times_over(times.seconds, median(times.cpu_s) / gb);
  result.round_s = totals.seconds;
  result.parts = {
      .call_s = median(totals.call_s),
      .sums_s = median(totals.sums_s),
      .mean_s = median(totals.mean_s),
      .commit_s = median(totals.commit_s),
      .kernel_s_per_gb = median(totals.kernel_s_per_gb),
      .own_s_per_gb = result.tradewind.cpu_s_per_gb - median(totals.kernel_s_per_gb),
      .memory_vectors = *std::ranges::max_element(totals.peak_memory) / static_cast<double>(options.bytes)};
  result.identical = totals.identical;
  result.difference = totals.difference;
  if (options.disturbance)
    result.disturbed = {describe(*options.disturbance), median(totals.committed_s),
                        median(totals.disturbed_s)};
  if (options.trouble && !totals.under_s.empty()) result.trouble = trouble_times(*options.trouble, totals);
}

Status take_turns(const ReduceOptions& options, const Ground& ground, Totals& totals, const Say& say) {
  const auto victim = options.disturbance ? options.disturbance->victim : std::nullopt;
  if (victim && victim->value > ground.hosts.size())
    return Error{
        fmt::format("{}: there are peers 1 to {}", describe(*options.disturbance), ground.hosts.size())};
  for (Round turn = 1; turn <= options.turns; ++turn) {
    if (options.turns > 1) say(fmt::format("turn {} of {}", turn, options.turns));
    if (const Status taken = take_turn(options, ground, totals); !taken) return taken;
  }
  return Unit{};
}

Status on_loopback(const ReduceOptions& options, BenchResult& result, const Say& say) {
  result.topology = "loopback";
  result.peers = options.most_peers();
  Totals totals;
  const Status taken = take_turns(options, {.hosts = std::vector<Host>(result.peers)}, totals, say);
  if (!taken) return taken;
  fill(result, options, totals);
  result.bound_s =
      swarm::bound_seconds(wire_bytes(options), loopback_lines(result.peers, median(totals.pumped)));
  result.bound_cpu_s_per_gb = median(totals.pump_cpu);
  return Unit{};
}

Status on_testbed(const ReduceOptions& options, BenchResult& result, const Say& say) {
  TW_TRY(const auto testbed, Testbed::up(options.topology, options.peers));
  const TestbedPlan& plan = testbed.plan();
  result.topology = plan.name;
  result.scale = plan.scale;
  result.peers = plan.hosts.size();
  Totals totals;
  const Ground ground{testbed.hosts(), &testbed};
  if (const Status taken = take_turns(options, ground, totals, say); !taken) return taken;
  fill(result, options, totals);
  result.bound_s = bound_seconds(wire_bytes(options), plan);
  TW_TRY(auto box, testbed.box());
  result.box = std::move(box);
  return Unit{};
}

}  // namespace

Result<BenchResult> reduce(const ReduceOptions& options, const Say& say) {
  for (const std::string& baseline : options.baselines) {
    TW_TRY(baseline_program(baseline));
  }
  BenchResult result{.bytes = options.bytes,
                     .codec = std::string(name_of(options.codec)),
                     .warm_up = options.warm_up,
                     .rounds = options.rounds,
                     .turns = options.turns,
                     .streams = options.streams,
                     .tls = options.tls};
  sign(result);
  TW_TRY(options.topology.empty() ? on_loopback(options, result, say) : on_testbed(options, result, say));
  return result;
}

}  // namespace tw::measure
