// SPDX-License-Identifier: Apache-2.0
#include "host/system/signal_tap.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "base/check.h"
#include "host/system/early_signals.h"

namespace tw::host {
namespace {

// Schedulers send SIGTERM twice within milliseconds; that is one.
constexpr std::int64_t kTwice_ms = 1000;

// A signal handler reaches nothing else.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
constinit std::array<std::atomic<bool>, NSIG> came{};
constinit std::array<struct sigaction, NSIG> before{};
constinit std::atomic<std::int64_t> first_terminated_ms{0};

// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

void give_up_on_second(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t now_ms = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  std::int64_t first_ms = 0;
  if (first_terminated_ms.compare_exchange_strong(first_ms, now_ms) || now_ms - first_ms < kTwice_ms) return;

  struct sigaction usual {};

  usual.sa_handler = SIG_DFL;
  sigaction(signal, &usual, nullptr);
}

void tapped(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  came[static_cast<std::size_t>(signal)] = true;
  const struct sigaction& next = before[static_cast<std::size_t>(signal)];
  if ((next.sa_flags & SA_SIGINFO) != 0) {
    next.sa_sigaction(signal, info, context);
  } else if (next.sa_handler != SIG_DFL && next.sa_handler != SIG_IGN) {
    next.sa_handler(signal);
  }
  if (signal == SIGTERM) give_up_on_second(signal);
  errno = error;
}

}  // namespace

void tap_signal(int signal) {
  TW_CHECK(signal > 0 && signal < NSIG);
  if (is_tapped(signal) || (signal == SIGHUP && ignores(SIGHUP))) return;
  struct sigaction& next = before[static_cast<std::size_t>(signal)];
  sigaction(signal, nullptr, &next);
  struct sigaction action = next;
  action.sa_sigaction = tapped;
  action.sa_flags |= SA_SIGINFO;
  sigaction(signal, &action, nullptr);
}

bool is_tapped(int signal) {
  struct sigaction now {};

  sigaction(signal, nullptr, &now);
  return (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == tapped;
}

std::vector<int> take_tapped_signals() {
  std::vector<int> signals;
  for (std::size_t signal = 0; signal < came.size(); ++signal)
    if (came[signal].exchange(false)) signals.push_back(static_cast<int>(signal));
  return signals;
}

}  // namespace tw::host
