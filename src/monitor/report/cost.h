// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "base/ids.h"
#include "monitor/fold/links.h"
#include "monitor/logs/event_log_json.h"
#include "monitor/report/report.h"

/// What the machines of a run cost, from their hours and the prices that the caller knows. Pure.
namespace tw::monitor {

/// Hours of each peer that has a log: from the first line of a process to its `stop`, or to its last line
/// where it has none. What a machine took to start and to end is in no log.
std::map<PeerId, double> machine_hours(const std::vector<std::vector<LogEntry>>& logs);

/// Fills in the traffic's part of Summary::cost, between the sites that the events name, and what was read
/// from stores of data. Entries in the order of time.
void tell_traffic(Summary& summary, const std::vector<LogEntry>& entries);

/// Fills in Summary::cost, but for hours and traffic. usd_per_h: at least 0, finite; of a machine with this
/// peer alone, whose events tell no price. Other peers that are not in it have none.
void tell_cost(Summary& summary, const std::map<PeerId, double>& usd_per_h);

}  // namespace tw::monitor
