// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "peer/link_options.h"

namespace CLI {
class App;
}

namespace tw::cli {

/// Adds an option of the command for this field, with its default in the help.
void describe_link(CLI::App& command, const peer::LinkField& field, peer::LinkOptions& links);

/// Empties all texts. After describe_link: then only what the user writes is given.
void forget_defaults(peer::LinkOptions& links);

/// The given options as variables of a program's environment (docs/python.md).
std::vector<std::pair<std::string, std::string>> variables_of(const peer::LinkOptions& links);

}  // namespace tw::cli
