// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "monitor/event_log_json.h"

/// Values of the command line, from text. Every error names the option, the value, what was expected, and
/// where there is one the nearest right thing.
namespace tw {

struct Bounds {
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
};

Result<std::uint64_t> parse_count(const std::string& option, const std::string& text, Bounds bounds);

/// "1..100": both ends are included.
Result<std::pair<std::uint64_t, std::uint64_t>> parse_seeds(const std::string& text);

/// "training.rounds=20" for read_run_file.
Result<std::pair<std::string, std::string>> parse_setting(const std::string& text);

/// HOST:PORT.
Result<std::string> parse_address_option(const std::string& option, const std::string& text);

/// "256MiB": what the event log of a peer may take of the disk, all its files together.
Result<LogLimits> parse_log_limit(const std::string& text);

/// "aws:us-east-1:a": where a peer is.
Result<std::string> parse_site_option(const std::string& text);

}  // namespace tw
