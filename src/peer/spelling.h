// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/text/option.h"

namespace tw::peer {

/// How readers of a message write options.
enum class Spelling {
  command_line,  ///< --wait-for 4, --insecure
  python,        ///< wait_for=4, insecure=True
};

/// name: as the table of link_options.h has it, "wait_for".
OptionName spelled(Spelling spelling, std::string_view name);

/// The variable of the environment in which `tw run` gives an option to the program: "TRADEWIND_WAIT_FOR".
/// TRADEWIND_RUN is the run file, so the folder of `tw init` is TRADEWIND_RUN_FOLDER.
std::string variable_of(std::string_view name);

/// An option that is on: "--insecure" or "insecure=True".
std::string spelled_flag(Spelling spelling, std::string_view name);

}  // namespace tw::peer
