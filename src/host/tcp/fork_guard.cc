// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/fork_guard.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace tw::host {
namespace {

constexpr int kNone = 0;  // descriptor + 1, so that zeroed memory is empty

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a forked child has nothing else to look
// at
std::array<std::atomic<int>, 4096> guarded_places;

}  // namespace

ForkGuard::ForkGuard(int descriptor) : place_(-1) {
  for (std::size_t i = 0; i < guarded_places.size() && place_ < 0; ++i) {
    int expected = kNone;
    if (guarded_places[i].compare_exchange_strong(expected, descriptor + 1)) place_ = static_cast<int>(i);
  }
}

void ForkGuard::release() {
  if (place_ >= 0) guarded_places.at(static_cast<std::size_t>(place_)) = kNone;
  place_ = -1;
}

void close_guarded_sockets() {
  for (std::atomic<int>& place : guarded_places) {
    const int held = place.exchange(kNone);
    if (held != kNone) close(held - 1);
  }
}

}  // namespace tw::host
