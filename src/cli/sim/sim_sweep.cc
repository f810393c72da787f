// SPDX-License-Identifier: Apache-2.0
#include "cli/sim/sim_sweep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

namespace tw::cli {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks(200);

// The command that shows the seed of this thread again, for the handler of SIGABRT.
thread_local char t_command[512];

extern "C" void tell_seed(int signal) {
  if (t_command[0] != '\0') {
    const char* const words[] = {"the run of a seed broke an assertion (above); again: ", t_command, "\n"};
    for (const char* text : words) {
      if (write(STDERR_FILENO, text, std::strlen(text)) < 0) break;
    }
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// Hands out the seeds and collects what they came to.
class Sweep {
 public:
  Sweep(const SweepOptions& options, const RunSeed& run)
      : options_(options), run_(run), next_(options.seeds.first) {}

  SweepResult run(const std::function<bool(const SweepResult&)>& look) {
    std::signal(SIGABRT, tell_seed);
    const std::uint64_t jobs =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(options_.jobs), options_.seeds.count());
    running_ = jobs;
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < jobs; ++i) threads.emplace_back([this] { work(); });
    std::unique_lock lock(mutex_);
    while (!done_.wait_for(lock, kBetweenLooks, [this] { return running_ == 0; })) {
      if (!look(tally_)) stopped_ = true;
    }
    lock.unlock();
    threads.clear();
    std::signal(SIGABRT, SIG_DFL);
    std::sort(tally_.failed.begin(), tally_.failed.end(),
              [](const sim::SimReport& a, const sim::SimReport& b) { return a.seed < b.seed; });
    return std::move(tally_);
  }

 private:
  void work() {
    while (const auto seed = next()) {
      const std::string command = command_for(options_.file, *seed);
      std::strncpy(t_command, command.c_str(), sizeof(t_command) - 1);
      sim::SimReport report = run_(*seed);
      std::optional<sim::SimReport> again;
      if (options_.twice) again = run_(*seed);
      t_command[0] = '\0';
      const std::lock_guard lock(mutex_);
      add(tally_, std::move(report), again ? &*again : nullptr);
    }
    const std::lock_guard lock(mutex_);
    --running_;
    done_.notify_all();
  }

  std::optional<std::uint64_t> next() {
    const std::lock_guard lock(mutex_);
    if (stopped_ || taken_ == options_.seeds.count()) return std::nullopt;
    ++taken_;
    return next_++;
  }

  const SweepOptions& options_;
  const RunSeed& run_;
  std::mutex mutex_;
  std::condition_variable done_;
  std::uint64_t next_;
  std::uint64_t taken_ = 0;
  std::uint64_t running_ = 0;
  bool stopped_ = false;
  SweepResult tally_;
};

}  // namespace

SweepResult sweep(const SweepOptions& options, const RunSeed& run,
                  const std::function<bool(const SweepResult&)>& look) {
  return Sweep(options, run).run(look);
}

void add(SweepResult& tally, sim::SimReport report, const sim::SimReport* again) {
  ++tally.seeds;
  tally.events += report.events;
  tally.all_events += report.events + (again == nullptr ? 0 : again->events);
  tally.simulated += report.simulated;
  for (const auto& [kind, count] : report.faults) {
    tally.faults[kind].drawn += count.drawn;
    tally.faults[kind].fired += count.fired;
  }
  for (const auto& [name, taken] : report.rare) tally.rare[name] += taken;
  for (const auto& [phase, count] : report.kills_by_phase) tally.kills_by_phase[phase] += count;
  tally.leader_kills += report.leader_kills;
  tally.minority_records += report.minority_records;
  if (again != nullptr && (again->history != report.history || again->events != report.events)) {
    report.violations.push_back(
        {"replay",
         fmt::format("a second run of this seed has another history: {} after {} events, {} after "
                     "{} events",
                     to_string(report.history), report.events, to_string(again->history), again->events)});
  }
  if (!report.violations.empty()) tally.failed.push_back(std::move(report));
}

std::string command_for(const std::string& file, std::uint64_t seed) {
  return fmt::format("tw sim {} --seed {} --trace", file, seed);
}

}  // namespace tw::cli
