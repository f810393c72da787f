// SPDX-License-Identifier: Apache-2.0
#include "mutations/trial.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "base/check.h"
#include "explorer/explorer.h"
#include "mutations/planted.h"
#include "sim/scenarios/scenario_yaml.h"

namespace tw {
namespace {

/// Seconds of the processor. A seed takes well under one; a bug may send messages in a circle for ever.
constexpr int kLongestSeed = 20;
/// Bytes. A few megabytes are used.
constexpr rlim_t kMemory = rlim_t{2} << 30;

void tell(const std::string& line) {
  TW_CHECK(write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
}

void limit_processor_time() {
  itimerval timer{};
  timer.it_value.tv_sec = kLongestSeed;
  TW_CHECK(setitimer(ITIMER_VIRTUAL, &timer, nullptr) == 0);
}

/// In the child, as run_seeds; its worlds count as seeds.
void run_explorer(const Bug& bug, std::uint64_t most) {
  planted_bug = bug.number;
  std::uint64_t world = 0;
  for (const explorer::World& one : explorer::worlds()) {
    if (world == most) return;
    tell(fmt::format("seed {}\n", world++));
    const explorer::Findings findings = explorer::explore(one.bounds);
    if (findings.broken.empty()) continue;
    tell(fmt::format("found explorer {}, after {} events\n", findings.broken, findings.story.size()));
    return;
  }
}

/// Whether the test passes with this bug.
bool passes(const std::string& test, std::uint32_t bug) {
  planted_bug = bug;
  GTEST_FLAG_SET(filter, test);
  const bool passed = RUN_ALL_TESTS() == 0;
  const int run = testing::UnitTest::GetInstance()->test_to_run_count();
  if (run == 1) return passed;
  tell(fmt::format("{} tests are called {}\n", run, test));
  _exit(1);
}

/// In the child, as run_seeds.
void run_unit_test(const Bug& bug) {
  testing::InitGoogleTest();
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  if (!passes(bug.test, 0)) {
    tell(fmt::format("{} fails without the bug\n", bug.test));
    _exit(1);
  }
  tell("seed 0\n");
  limit_processor_time();
  if (!passes(bug.test, bug.number)) tell(fmt::format("found test {} fails\n", bug.test));
}

/// In the child: what is written is read by Trial::finding.
void run_seeds(const Bug& bug, std::uint64_t seeds, const std::map<std::string, double>& noise) {
  const rlimit memory{kMemory, kMemory};
  TW_CHECK(setrlimit(RLIMIT_AS, &memory) == 0);
  if (bug.scenario == kExplorer) return run_explorer(bug, seeds);
  if (bug.scenario == kUnit) return run_unit_test(bug);
  const Result<sim::Scenario> scenario =
      sim::read_scenario(std::string(TW_SOURCE_DIR) + "/tests/scenarios/" + bug.scenario + ".yaml");
  if (!scenario) {
    tell(scenario.error().message + "\n");
    _exit(1);
  }
  const auto violations = [&](std::uint32_t bug_number, std::uint64_t seed) {
    planted_bug = bug_number;
    auto all = run_scenario(scenario.value(), seed).violations;
    std::erase_if(all, [&](const sim::Violation& violation) {
      const auto found = noise.find(violation.checker);
      return found != noise.end() && found->second * static_cast<double>(seed + 1) >= Trial::kNoise;
    });
    return all;
  };
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    tell(fmt::format("seed {}\n", seed));
    limit_processor_time();
    const std::vector<sim::Violation> seen = violations(bug.number, seed);
    if (seen.empty() || (bug.number != 0 && !violations(0, seed).empty())) continue;
    std::set<std::string> told;
    for (const sim::Violation& one : seen) {
      if (told.insert(one.checker).second) tell(fmt::format("found {} {}\n", one.checker, one.message));
    }
    if (bug.number != 0) return;
  }
}

}  // namespace

Trial::Trial(Bug bug, std::uint64_t seeds, const std::map<std::string, double>& noise)
    : bug_(std::move(bug)) {
  std::array<int, 2> ends{};
  TW_CHECK(pipe(ends.data()) == 0);
  process_ = fork();
  TW_CHECK(process_ >= 0);
  if (process_ == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    run_seeds(bug_, seeds, noise);
    _exit(0);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

bool Trial::read() {
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(pipe_, buffer.data(), buffer.size());
  if (got > 0) told_.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0;
}

Finding Trial::finding() {
  int status = 0;
  rusage used{};
  TW_CHECK(wait4(process_, &status, 0, &used) == process_);
  close(pipe_);
  Finding finding{bug_};
  finding.cpu_s =
      static_cast<double>(used.ru_utime.tv_sec) + 1e-6 * static_cast<double>(used.ru_utime.tv_usec);
  std::istringstream lines(told_);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first == "seed") {
      words >> finding.seeds;
      ++finding.seeds;
    } else if (first == "found") {
      std::string law;
      words >> law >> std::ws;
      ++finding.broken[law];
      if (std::exchange(finding.outcome, Outcome::found) == Outcome::found) continue;
      finding.checker = law;
      std::getline(words, finding.message);
    } else {
      finding.message = line;
    }
  }
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const bool check = signal == SIGABRT || signal == SIGVTALRM;
    finding.outcome = check ? Outcome::found : Outcome::crashed;
    finding.checker = signal == SIGABRT ? "TW_CHECK" : signal == SIGVTALRM ? "endless" : strsignal(signal);
    ++finding.broken[finding.checker];
  } else if (WEXITSTATUS(status) != 0) {
    finding.outcome = Outcome::crashed;
    finding.checker = fmt::format("exit {}", WEXITSTATUS(status));
  }
  return finding;
}

}  // namespace tw
