// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tw::cli {

/// What is wrong with the words of a command line; empty: nothing. describe: of the command, such as
/// describe_up.
template <class Arguments>
std::string fault_in_options(void (*describe)(CLI::App&, Arguments&), const std::string& words) {
  CLI::App app;
  Arguments arguments;
  describe(app, arguments);
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

}  // namespace tw::cli
