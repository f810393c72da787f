// SPDX-License-Identifier: Apache-2.0
#include "launch/local/crew_signals.h"

#include <algorithm>
#include <atomic>

#include "host/system/early_signals.h"

namespace tw::launch {
namespace {

constexpr Duration kGraceOfCrew = std::chrono::seconds(3);
constexpr Duration kApart = std::chrono::seconds(1);
constexpr std::array<int, 5> kPassedOn = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/// How often each of them came.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a signal handler reaches nothing else
constinit std::array<std::atomic<int>, kPassedOn.size()> seen{};

void count_signal(int signal) {
  for (std::size_t i = 0; i < kPassedOn.size(); ++i)
    if (kPassedOn[i] == signal) ++seen[i];
}

}  // namespace

CrewSignals::CrewSignals() {
  for (std::atomic<int>& times : seen) times = 0;

  struct sigaction action {};

  action.sa_handler = count_signal;
  const bool outlives_terminal = host::ignores(SIGHUP);
  for (std::size_t i = 0; i < kPassedOn.size(); ++i) sigaction(kPassedOn[i], &action, &before_[i]);
  if (outlives_terminal) std::signal(SIGHUP, SIG_IGN);
  for (const int early : host::take_early_signals()) count_signal(early);
}

CrewSignals::~CrewSignals() {
  for (std::size_t i = 0; i < kPassedOn.size(); ++i) sigaction(kPassedOn[i], &before_[i], nullptr);
}

bool CrewSignals::any() const {
  return std::ranges::any_of(seen, [](const std::atomic<int>& times) { return times > 0; });
}

std::vector<int> CrewSignals::take(Instant now) {
  std::vector<int> news;
  for (std::size_t i = 0; i < kPassedOn.size(); ++i) {
    const int times = seen[i] - taken_[i];
    if (times == 0) continue;
    const bool told_before = std::ranges::any_of(taken_, [](int before) { return before > 0; });
    taken_[i] += times;
    news.push_back(kPassedOn[i]);
    const bool twice = kPassedOn[i] == SIGINT && (told_before || times > 1);
    const bool again = kPassedOn[i] == SIGTERM && terminated_at_ && now - *terminated_at_ >= kApart;
    if (kPassedOn[i] == SIGTERM && !terminated_at_) terminated_at_ = now;
    if (twice || again) end_all(now);
  }
  return news;
}

void CrewSignals::end_all(Instant now) { kill_at_ = now + kGraceOfCrew; }

}  // namespace tw::launch
