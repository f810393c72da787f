// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "sim/scenarios/scenario.h"

namespace tw::sim {

/// Reads a scenario file (YAML; the keys are those of scenario_reference(), sim/scenarios/scenario_fields.h).
/// Without a `name` the scenario has that of the file.
///
/// An error has one line for each fault, "storm.yaml:12: faults.kil: unknown fault; did you mean "kill"?".
Result<Scenario> read_scenario(const std::string& path);

/// The same for a text; `file` is its name in messages.
Result<Scenario> parse_scenario(const std::string& text, const std::string& file);

}  // namespace tw::sim
