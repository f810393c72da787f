// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/text/option.h"
#include "monitor/logs/event_log_json.h"
#include "spot/sources.h"

/// Values of options of a peer, from text. Every error names the option, the value and what was expected.
namespace tw::peer {

/// More threads may never all be there, and the process waits for them for ever.
inline constexpr std::uint64_t kMostThreads = 1024;

/// "4": threads of a program, 1 to kMostThreads.
Result<std::uint64_t> parse_threads_option(const OptionName& option, const std::string& text);

/// HOST:PORT.
Result<std::string> parse_address_option(const OptionName& option, const std::string& text);

/// "256MiB": limit of the event log of a peer on disk, all its files together.
Result<monitor::LogLimits> parse_log_limit(const OptionName& option, const std::string& text);

/// "aws:us-east-1:a": site of a peer; nothing for an empty text.
Result<std::string> parse_site_option(const OptionName& option, const std::string& text);

/// "auto", "aws", "gcp", "azure", "signal", "none", "file:PATH": source of notices. The grace is not changed.
Result<spot::NoticeOptions> parse_notices_option(const OptionName& option, const std::string& text);

/// Whether the text of a price asks the catalogs: "catalog" or "catalog:TYPE".
bool asks_catalog(const std::string& price);

/// "0.35": 0 to 100000 USD an hour; nothing for an empty text.
Result<std::optional<double>> parse_price_option(const OptionName& option, const std::string& text);

/// "25s": 1 s to an hour.
Result<Duration> parse_grace_option(const OptionName& option, const std::string& text);

}  // namespace tw::peer
