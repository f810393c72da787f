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
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): the same
constinit std::atomic<bool> is_to_stop{false};

void count_signal(int signal) {
  for (std::size_t i = 0; i < kPassedOn.size(); ++i)
    if (kPassedOn[i] == signal) ++seen[i];
}

void note_stop(int) { is_to_stop = true; }

void catch_stop(struct sigaction* before) {
  struct sigaction action {};

  action.sa_handler = note_stop;
  sigaction(SIGTSTP, &action, before);
}

}  // namespace

CrewSignals::CrewSignals() {
  for (std::atomic<int>& times : seen) times = 0;
  is_to_stop = false;

  struct sigaction action {};

  action.sa_handler = count_signal;
  const bool outlives_terminal = host::ignores(SIGHUP);
  for (std::size_t i = 0; i < kPassedOn.size(); ++i) sigaction(kPassedOn[i], &action, &before_[i]);
  if (outlives_terminal) std::signal(SIGHUP, SIG_IGN);
  const bool stays_awake = host::ignores(SIGTSTP);
  catch_stop(&stop_before_);
  if (stays_awake) std::signal(SIGTSTP, SIG_IGN);
  for (const int early : host::take_early_signals()) count_signal(early);
}

CrewSignals::~CrewSignals() {
  for (std::size_t i = 0; i < kPassedOn.size(); ++i) sigaction(kPassedOn[i], &before_[i], nullptr);
  sigaction(SIGTSTP, &stop_before_, nullptr);
}

bool CrewSignals::take_stop() { return is_to_stop.exchange(false); }

void CrewSignals::stop_here() {
  std::signal(SIGTSTP, SIG_DFL);
  std::raise(SIGTSTP);
  catch_stop(nullptr);
}

bool CrewSignals::any() const {
  return std::ranges::any_of(seen, [](const std::atomic<int>& times) { return times > 0; });
}

bool CrewSignals::came(int signal) const {
  const auto at = std::ranges::find(kPassedOn, signal);
  return at != kPassedOn.end() && seen[static_cast<std::size_t>(at - kPassedOn.begin())] > 0;
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
