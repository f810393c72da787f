// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tw::soak {

/// What a process holds.
struct Usage {
  double at_s = 0;              ///< since the soak began
  std::uint64_t own_bytes = 0;  ///< resident, without files such as the libraries
  std::uint64_t descriptors = 0;
  std::uint64_t threads = 0;
};

/// Nothing when there is no such process.
std::optional<Usage> usage_of(pid_t process, double at_s);

/// Usage of peers that live as long as the soak, measured when nothing is disturbed. After the first tenth of
/// the soak it may not grow by more than 5 %, or by what the allocator and one link of spare streams make; a
/// soak of less than ten minutes is not judged.
class UsageJudge {
 public:
  void see(const std::string& peer, const Usage& usage) { seen_[peer].push_back(usage); }

  /// A row for each measurement.
  std::vector<std::string> table() const;

  std::vector<std::string> faults(double lasted_s) const;

 private:
  std::map<std::string, std::vector<Usage>> seen_;
};

}  // namespace tw::soak
