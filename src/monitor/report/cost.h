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
/// without one. Logs do not have the start-up and shutdown of a machine.
std::map<PeerId, double> machine_hours(const std::vector<std::vector<LogEntry>>& logs);

/// Fills in the traffic's part of Summary::cost, between the sites that the events name, and the use of
/// stores. Entries in the order of time.
void tell_traffic(Summary& summary, const std::vector<LogEntry>& entries);

/// Fills in Summary::cost, except hours and traffic. usd_per_h: at least 0, finite; machine prices of peers
/// without a price in their events. Other peers have no price.
void tell_cost(Summary& summary, const std::map<PeerId, double>& usd_per_h);

}  // namespace tw::monitor
