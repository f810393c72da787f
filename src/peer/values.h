// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/option.h"
#include "base/result.h"
#include "monitor/event_log_json.h"

/// Values of options of a peer, from text. Every error names the option, the value and what was expected.
namespace tw::peer {

/// HOST:PORT.
Result<std::string> parse_address_option(const OptionName& option, const std::string& text);

/// "256MiB": what the event log of a peer may take of the disk, all its files together.
Result<monitor::LogLimits> parse_log_limit(const OptionName& option, const std::string& text);

/// "aws:us-east-1:a": where a peer is.
Result<std::string> parse_site_option(const OptionName& option, const std::string& text);

}  // namespace tw::peer
