// SPDX-License-Identifier: Apache-2.0
#include "host/system/early_signals.h"

#include <array>
#include <atomic>
#include <csignal>

namespace tw::host {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a signal handler reaches nothing else
constinit std::array<std::atomic<bool>, NSIG> came_early{};

/// A second Ctrl-C does not wait until all is loaded.
void note(int signal) {
  const bool again = came_early[static_cast<std::size_t>(signal)].exchange(true);
  if (signal != SIGINT || !again) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void catch_early_signals(std::span<const int> signals) {
  struct sigaction action {};

  action.sa_handler = note;
  for (const int signal : signals)
    if (signal != SIGHUP || !ignores(SIGHUP)) sigaction(signal, &action, nullptr);
}

bool ignores(int signal) {
  struct sigaction now {};

  sigaction(signal, nullptr, &now);
  return (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_IGN;
}

std::vector<int> take_early_signals() {
  std::vector<int> signals;
  for (std::size_t signal = 0; signal < came_early.size(); ++signal)
    if (came_early[signal].exchange(false)) signals.push_back(static_cast<int>(signal));
  return signals;
}

}  // namespace tw::host
