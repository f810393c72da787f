// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "wan/topology.h"

namespace tw::wan {

/// The error lists every complaint as FILE:LINE: KEY: what was expected and found.
Result<Topology> parse_topology(const std::string& text, const std::string& file);

/// A file, or the name of a topology in `shipped`, a folder.
Result<Topology> read_topology(const std::string& name_or_path, const std::string& shipped);

std::vector<std::string> shipped_names(const std::string& shipped);

/// All keys with what they take and mean, as Markdown tables.
std::string topology_reference();

}  // namespace tw::wan
