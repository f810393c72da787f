// SPDX-License-Identifier: Apache-2.0
#include "e2e/soak/usage_judge.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/median.h"

namespace tw::soak {
namespace {

constexpr double kGrowth = 0.05;
/// A tenth of less does not fill caches.
constexpr double kShortest_s = 600;
/// What 5 % of a small process would be less than: a page table more, a link with another count of streams.
constexpr double kSpareBytes = 1 << 20;
constexpr double kSpareDescriptors = 4;
constexpr double kMib = 1 << 20;

/// Median of what was measured in a part of the soak.
std::optional<double> level(const std::vector<Usage>& seen, double from_s, double until_s,
                            std::uint64_t Usage::*what) {
  std::vector<double> values;
  for (const Usage& usage : seen) {
    if (usage.at_s >= from_s && usage.at_s <= until_s) values.push_back(static_cast<double>(usage.*what));
  }
  if (values.empty()) return std::nullopt;
  return median(values);
}

}  // namespace

std::optional<Usage> usage_of(pid_t process, double at_s) {
  const std::string folder = fmt::format("/proc/{}", process);
  std::ifstream status(folder + "/status");
  Usage usage{.at_s = at_s};
  for (std::string word; status >> word;) {
    if (word == "RssAnon:") {
      status >> usage.own_bytes;
      usage.own_bytes *= 1024;
    } else if (word == "Threads:") {
      status >> usage.threads;
    }
  }
  if (usage.own_bytes == 0) return std::nullopt;
  std::error_code gone;
  for (std::filesystem::directory_iterator file(folder + "/fd", gone), end; !gone && file != end;
       file.increment(gone))
    ++usage.descriptors;
  return usage;
}

std::vector<std::string> UsageJudge::table() const {
  std::vector<std::string> rows;
  for (const auto& [peer, seen] : seen_) {
    for (const Usage& usage : seen) {
      rows.push_back(fmt::format("{:8} {:7.0f} s {:8.1f} MiB {:5} descriptors {:3} threads", peer, usage.at_s,
                                 static_cast<double>(usage.own_bytes) / kMib, usage.descriptors,
                                 usage.threads));
    }
  }
  return rows;
}

std::vector<std::string> UsageJudge::faults(double lasted_s) const {
  std::vector<std::string> faults;
  if (lasted_s < kShortest_s) return faults;
  const auto judge = [&](const std::string& peer, std::uint64_t Usage::*what, double spare,
                         const std::string& name) {
    const auto& seen = seen_.at(peer);
    const auto before = level(seen, 0.1 * lasted_s, 0.4 * lasted_s, what);
    const auto after = level(seen, 0.7 * lasted_s, lasted_s, what);
    if (!before || !after || *after <= *before + std::max(kGrowth * *before, spare)) return;
    faults.push_back(fmt::format("{}: {} grew from {:.0f} to {:.0f}", peer, name, *before, *after));
  };
  for (const auto& [peer, seen] : seen_) {
    judge(peer, &Usage::own_bytes, kSpareBytes, "own memory in bytes");
    judge(peer, &Usage::descriptors, kSpareDescriptors, "descriptors");
    judge(peer, &Usage::threads, 0, "threads");
  }
  return faults;
}

}  // namespace tw::soak
