// SPDX-License-Identifier: Apache-2.0
#include "cli/run/store_warnings.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

#include "base/time.h"
#include "cli/commands.h"

namespace tw::cli {
namespace {

constexpr Duration kBetweenTroubles = std::chrono::seconds(10);

Duration since_boot() {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
}

/// When a trouble was last shown.
struct Shown {
  std::mutex mutex;
  std::optional<Duration> at;  // guarded by mutex
};

}  // namespace

std::function<void(const std::string&)> warn_of_stores() {
  return [shown = std::make_shared<Shown>()](const std::string& trouble) {  // owners: the copies of this
    const std::lock_guard lock(shown->mutex);
    const Duration now = since_boot();
    if (shown->at && now - *shown->at < kBetweenTroubles) return;
    shown->at = now;
    warn(trouble);
  };
}

}  // namespace tw::cli
