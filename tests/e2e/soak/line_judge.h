// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "monitor/logs/event_log_json.h"

namespace tw::soak {

/// The line with each number replaced by #: lines that differ in nothing else say the same again.
std::string without_numbers(std::string_view line);

/// Counts what is said again and again. Lines that every healthy round has are not counted.
class LineJudge {
 public:
  /// A line that a process printed.
  void see(const std::string& speaker, std::string_view line);
  /// A line of an event log.
  void see(const monitor::LogEntry& entry);

  /// What was said more than `most` times by one speaker, the most frequent first.
  std::vector<std::string> repeated(std::size_t most) const;

 private:
  std::map<std::pair<std::string, std::string>, std::size_t> counts_;  ///< by speaker and line
};

}  // namespace tw::soak
