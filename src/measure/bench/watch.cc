// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/watch.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace tw::measure {
namespace {

constexpr std::chrono::minutes kPatience{5};

volatile std::sig_atomic_t signals = 0;

}  // namespace

Instant now() {
  return Instant(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

void watch_interrupts() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { signals = 1; });
}

bool interrupted() { return signals != 0; }

Status wait_until(const std::string& what, Duration every, const std::function<bool()>& holds) {
  const Instant end = now() + kPatience;
  while (!holds()) {
    if (interrupted()) return Error{"interrupted"};
    if (now() > end) return Error{fmt::format("{} after {} minutes", what, kPatience.count())};
    std::this_thread::sleep_for(every);
  }
  return Unit{};
}

}  // namespace tw::measure
