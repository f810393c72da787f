// SPDX-License-Identifier: Apache-2.0
#include "launch/held_signals.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <utility>

#include "host/system/early_signals.h"

namespace tw::launch {
namespace {

constexpr std::array kHeld = {SIGINT, SIGTERM, SIGHUP};
constexpr std::int64_t kApart_ms = 1000;

// A signal handler reaches nothing else.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
constinit std::array<std::atomic<int>, NSIG> held_counts{};
constinit std::atomic<std::int64_t> first_held_ms{0}, last_held_ms{0};  // 0: none came
constinit bool is_holding = false;

// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

void hold(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t now_ms = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  if (first_held_ms == 0) first_held_ms = now_ms;
  last_held_ms = now_ms;
  ++held_counts[static_cast<std::size_t>(signal)];
}

}  // namespace

HeldEndSignals::HeldEndSignals() : is_outer_(!std::exchange(is_holding, true)) {
  if (!is_outer_) return;

  struct sigaction action {};

  action.sa_handler = hold;
  action.sa_flags = SA_RESTART;
  first_held_ms = 0;
  last_held_ms = 0;
  for (const int signal : kHeld) {
    held_counts[static_cast<std::size_t>(signal)] = 0;
    if (host::ignores(signal)) continue;
    sigaction(signal, &action, &before_[signal]);
  }
}

HeldEndSignals::~HeldEndSignals() {
  if (!is_outer_) return;
  is_holding = false;
  for (const auto& [signal, action] : before_) sigaction(signal, &action, nullptr);
  for (const auto& [signal, action] : before_)
    if (held_counts[static_cast<std::size_t>(signal)].exchange(0) > 0) std::raise(signal);
}

bool HeldEndSignals::came() {
  int all = 0;
  for (const int signal : kHeld) all += held_counts[static_cast<std::size_t>(signal)];
  return all > 0;
}

bool HeldEndSignals::insist() {
  return held_counts[SIGINT] >= 2 || last_held_ms - first_held_ms >= kApart_ms;
}

}  // namespace tw::launch
