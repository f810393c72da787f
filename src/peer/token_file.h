// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/text/option.h"
#include "wire/token.h"

/// Tokens as a user gives them. Every error names the option or file and the next command.
namespace tw::peer {

/// Warns a person without ending: one line, without its end.
using Warn = std::function<void(const std::string& line)>;

/// The file of a run folder (`tw init`) that holds a token.
std::string token_file(const std::string& run_folder);

/// A token, or @ and the name of a file that holds one. warn: called if others may read the file.
Result<wire::Token> read_token(const OptionName& option, const std::string& text, const Warn& warn);

/// The token of a run folder. option: that has the folder as its value.
Result<wire::Token> read_folder_token(const OptionName& option, const std::string& folder, const Warn& warn);

}  // namespace tw::peer
