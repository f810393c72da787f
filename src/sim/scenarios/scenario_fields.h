// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/text/field_table.h"
#include "sim/scenarios/scenario.h"

/// The vocabulary of scenario files: one table, of which reading, checks, suggestions and the reference are
/// made.
namespace tw::sim {

/// Keys stand at the top (no section), in a map (workload), in each entry of a list (sites, links), or in the
/// map of a fault.
inline constexpr std::string_view kSites = "sites[]";
inline constexpr std::string_view kLinks = "links[]";
inline constexpr std::string_view kWorkload = "workload";
inline constexpr std::string_view kFault = "faults.NAME";

/// One key, such as "latency_ms" of a link.
struct ScenarioField;

/// Targets of the keys of a file; of lists, the entry that is being read.
struct ScenarioParts {
  Scenario scenario;
  SiteSpec site;
  LinkSpec link;
  FaultSpec fault{.chance = 1};
};

/// nullptr: no such key there.
const ScenarioField* find_scenario_field(std::string_view section, std::string_view name);

/// "a number above 0, or a range [least, most] of them".
std::string expectation(const ScenarioField& field);

/// Stores a value; returns the complaint about it, or an empty string.
std::string assign(const ScenarioField& field, const GivenValue& given, ScenarioParts& parts);

/// The complaint about a key that is not in the table, with the nearest name that is.
std::string unknown_scenario_key(std::string_view section, std::string_view name);
std::string unknown_fault(std::string_view name);

/// All keys and all faults with their meaning, as Markdown tables.
std::string scenario_reference();

}  // namespace tw::sim
