// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenarios/scenario.h"

/// The vocabulary of scenario files: one table, of which reading, checks, suggestions and the reference are
/// made.
namespace tw::sim {

/// Place of a key: at the top (an empty name), in a map (workload), in each entry of a list (sites, links),
/// or in the map of a fault.
enum class ScenarioSection : std::uint8_t { top, site, link, workload, fault };

/// One key, such as "latency_ms" of a link.
struct ScenarioField;

/// Targets of the keys of a file; of lists, the entry that is being read.
struct ScenarioParts {
  Scenario scenario;
  SiteSpec site;
  LinkSpec link;
  FaultSpec fault{.chance = 1};
};

/// A value as written in the file: one word, or a list of them.
struct GivenWords {
  std::vector<std::string> words;
  bool is_list = false;
};

/// "sites", "links", "workload", "faults": how the file names the section; empty for the top.
std::string_view name_of(ScenarioSection section);

/// nullptr: no such key there.
const ScenarioField* find_scenario_field(ScenarioSection section, std::string_view name);

/// "a number above 0, or a range [least, most] of them".
std::string expectation(const ScenarioField& field);

/// Stores a value; returns the complaint about it, or an empty string.
std::string assign(const ScenarioField& field, const GivenWords& given, ScenarioParts& parts);

/// The complaint about a key that is not in the table, with the nearest name that is.
std::string unknown_scenario_key(ScenarioSection section, std::string_view name);
std::string unknown_fault(std::string_view name);

/// What the fault does, in a few words.
std::string_view meaning_of(FaultKind kind);

/// All keys and all faults with their meaning, as Markdown tables.
std::string scenario_reference();

}  // namespace tw::sim
