// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/prng.h"
#include "sim/faults/fault_injector.h"
#include "sim/scenarios/scenario.h"
#include "sim/virtual/world.h"
#include "train/run/run_names.h"

namespace tw::sim {
namespace {

std::uint64_t whole(const Between& range, Prng& random) {
  return static_cast<std::uint64_t>(range.draw(random) + 0.5);
}

template <class T>
T one_of(const std::vector<T>& choices, Prng& random) {
  return choices.at(random.below(choices.size()));
}

train::RunOptions draw_run(Prng& random, const Scenario& scenario) {
  const WorkloadSpec& work = scenario.workload;
  train::RunOptions run;
  run.model = "file", run.data = "idx";  // the names that the frozen histories have
  run.microbatch = std::max<std::uint64_t>(1, whole(work.microbatch, random));
  // The last microbatch of a round is smaller as a rule.
  const std::uint64_t whole_ones =
      run.microbatch * std::max<std::uint64_t>(1, whole(work.microbatches, random));
  run.batch.size = whole_ones + random.below(run.microbatch);
  run.batch.bounds = {.least = whole_ones / 2, .most = 4 * whole_ones};
  run.optimizer.kind = one_of(work.optimizers, random);
  run.codec = one_of(work.codecs, random);
  if (run.codec == codec::Codec::int8) run.rounding = one_of(work.roundings, random);
  run.rounds = work.rounds;
  run.mode.digest_every = work.digest_every;
  run.norm_cap = work.norm_cap;
  run.patience = from_seconds(scenario.patience_s.draw(random));
  run.checkpoint.every = whole(work.checkpoint_every, random);
  if (run.checkpoint.every > 0) run.checkpoint.folder = "/checkpoints";
  if (run.checkpoint.every > 0 && work.copies > 0 && random.chance(work.copies))
    run.checkpoint.to = "s3://bucket/run";
  return run;
}

std::string text_of_batch(const train::RunOptions& run) {
  if (run.batch.size) return fmt::to_string(*run.batch.size);
  return fmt::format("auto from {} to {}", run.batch.bounds.least, run.batch.bounds.most);
}

/// Drawn sample by sample; none where the share is 0.
std::function<bool(std::uint64_t)> draw_samples(std::uint64_t seed, double share) {
  if (share <= 0) return {};
  return [seed, share](std::uint64_t sample) { return Prng(mix(seed, sample)).chance(share); };
}

std::uint32_t peers_of(const Scenario& scenario) {
  int peers = 0;
  for (const SiteSpec& site : scenario.sites) peers += site.peers;
  return static_cast<std::uint32_t>(peers);
}

WorldOptions draw_world(std::uint64_t seed, const Scenario& scenario, const Watching& watching) {
  Prng random(mix(seed, 11));
  WorldOptions world;
  world.seed = seed;
  world.run = draw_run(random, scenario);
  Prng sites(mix(seed, 14));
  world.run.sites = one_of(scenario.workload.averaging, sites);
  world.run.exact_batches = Prng(mix(seed, 15)).chance(scenario.workload.exact_batches);
  Prng modes(mix(seed, 19));
  world.run.mode.kind = one_of(scenario.workload.modes, modes);
  world.run.mode.fragments = whole(scenario.workload.fragments, modes);
  if (Prng(mix(seed, 20)).chance(scenario.workload.auto_batches)) world.run.batch.size.reset();
  if (world.run.overlaps() || !world.run.batch.size) world.run.exact_batches = false;
  if (Prng(mix(seed, 16)).chance(scenario.workload.own_models)) world.run.model = train::RunOptions::kOwn;
  world.model = {whole(scenario.workload.parameters, random), seed};
  world.model.broken = draw_samples(mix(seed, 17), scenario.workload.broken_samples);
  world.model.gone = draw_samples(mix(seed, 18), scenario.workload.gone_samples);
  world.segment_length = std::max<std::uint64_t>(1, whole(scenario.workload.segment_length, random));
  world.bulk_scale = scenario.workload.bulk_scale;
  world.wait_for = peers_of(scenario);
  world.sites = scenario.sites;
  world.links = scenario.links;
  world.rare_branches = scenario.rare_branches;
  world.keep_lines = watching.keep_lines;
  world.checkers = scenario.checkers;
  return world;
}

std::vector<Fault> draw_faults_of(std::uint64_t seed, const Scenario& scenario, double span_s) {
  Prng random(mix(seed, 12));
  FaultTimes times = scenario.times;
  times.rounds = scenario.workload.rounds;
  times.span_s = span_s;
  return draw_faults(random, scenario.faults, times);
}

double draw_span(std::uint64_t seed, const Scenario& scenario) {
  Prng random(mix(seed, 13));
  return scenario.times.span_s.draw(random);
}

/// A safety phase under faults, then a liveness phase without.
class ScenarioRun {
 public:
  ScenarioRun(const Scenario& scenario, std::uint64_t seed, const Watching& watching)
      : scenario_(scenario),
        watching_(watching),
        options_(draw_world(seed, scenario, watching)),
        span_s_(draw_span(seed, scenario)),
        world_(options_),
        injector_(scenario, world_),
        armed_(draw_faults_of(seed, scenario, span_s_)) {
    report_.seed = seed;
    describe();
  }

  SimReport run() {
    world_.watch([this](PeerId peer, const world::Event& event) { on_event(peer, event); });
    for (std::size_t site = 0; site < scenario_.sites.size(); ++site) {
      for (int i = 0; i < scenario_.sites[site].peers; ++i) world_.add_peer(static_cast<int>(site));
    }
    for (const Fault& fault : armed_) {
      ++report_.faults[fault.kind].drawn;
      if (!fault.cue) strike_after(fault, std::nullopt);
    }
    std::erase_if(armed_, [](const Fault& fault) { return !fault.cue; });
    world_.scheduler().after(from_seconds(span_s_), [this] { become_calm(); });
    world_.run_until(Scheduler::kStart + from_seconds(span_s_ + calm_limit_s()));
    world_.finish();
    return report();
  }

 private:
  /// Where no majority is kept, the slowest peer may have to do the whole run alone.
  double calm_limit_s() const {
    if (scenario_.keep_majority) return scenario_.calm_limit_s;
    double samples_per_s = 1e12;
    for (const SiteSpec& site : scenario_.sites)
      samples_per_s = std::min(samples_per_s, site.samples_per_s.least);
    const std::uint64_t samples = options_.run.target_batch().most() * options_.run.rounds;
    return scenario_.calm_limit_s + static_cast<double>(samples) / samples_per_s;
  }

  void describe() {
    const train::RunOptions& run = options_.run;
    report_.drawn.push_back(
        fmt::format("{} floats in segments of {}, microbatches of {}, target batch {}, {}, {}, checkpoint "
                    "every {} rounds",
                    options_.model.parameters, options_.segment_length, run.microbatch, text_of_batch(run),
                    run.dithers() ? "int8 by chance" : name_of(run.codec), name_of(run.optimizer.kind),
                    run.checkpoint.every));
    report_.drawn.push_back(fmt::format("{} peers, faults for {:.1f} s", options_.wait_for, span_s_));
    for (const Fault& fault : armed_) report_.drawn.push_back(to_string(fault));
  }

  void on_event(PeerId author, const world::Event& event) {
    if (watching_.on_event) watching_.on_event(author, event);
    if (injector_.calm()) return;
    const Round calm_rounds = scenario_.times.calm_rounds;
    const bool is_late = calm_rounds > 0 && event.round + calm_rounds >= options_.run.rounds;
    if (event.phase() == world::Phase::commit && is_late) {
      world_.scheduler().after(Duration{}, [this] { become_calm(); });
    }
    // Watchers must not act: whatever follows is a later call of the scheduler.
    for (std::size_t i = 0; i < armed_.size();) {
      const Fault& fault = armed_[i];
      if (fault.cue && fault.cue->phase == event.phase() && fault.cue->round == event.round) {
        strike_after(fault, author);
        armed_.erase(armed_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }

  void strike_after(const Fault& fault, std::optional<PeerId> author) {
    world_.scheduler().after(fault.after, [this, fault, author] { injector_.strike(fault, author); });
  }

  void become_calm() {
    armed_.clear();
    injector_.become_calm();
  }

  SimReport report() {
    report_.history = world_.history().digest();
    report_.violations = world_.referee().violations();
    report_.lines = world_.history().lines();
    const wire::Record* last = world_.referee().ledger().newest();
    report_.rounds = last == nullptr ? 0 : last->round;
    for (const FaultRow& row : fault_rows()) {
      if (const int fired = injector_.fired(row.kind); fired > 0) report_.faults[row.kind].fired = fired;
    }
    report_.rare = world_.rare();
    report_.kills_by_phase = injector_.kills_by_phase();
    report_.leader_kills = injector_.leader_kills();
    report_.minority_records = world_.referee().ledger().minority_records();
    report_.events = world_.scheduler().events();
    report_.simulated = world_.now() - Scheduler::kStart;
    return report_;
  }

  const Scenario& scenario_;
  const Watching& watching_;
  WorldOptions options_;
  double span_s_;
  World world_;
  FaultInjector injector_;
  std::vector<Fault> armed_;  ///< wait for their cue
  SimReport report_;
};

}  // namespace

SimReport run_scenario(const Scenario& scenario, std::uint64_t seed, const Watching& watching) {
  return ScenarioRun(scenario, seed, watching).run();
}

std::string to_string(const SimReport& report) {
  std::string text =
      fmt::format("seed {}: {} rounds in {:.1f} s, {} events, history {}", report.seed, report.rounds,
                  to_seconds(report.simulated), report.events, to_string(report.history));
  for (const Violation& violation : report.violations) {
    text += fmt::format("\n  {}: {}", violation.checker, violation.message);
  }
  for (const std::string& line : report.drawn) text += "\n  drawn: " + line;
  return text;
}

}  // namespace tw::sim
