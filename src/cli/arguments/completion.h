// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tw::cli {

/// One command of a program: its place ("", " bench", " bench reduce"), and what may follow it, each with a
/// description. Hidden commands and options are left out.
struct CompletedCommand {
  struct Word {
    std::string name, about;
  };

  std::string place;
  std::vector<Word> words;
};

/// All commands of `app`, the program itself first.
std::vector<CompletedCommand> completed_commands(const CLI::App& app);

/// A script that teaches bash or zsh to complete the command line of `tw`. Where no word fits, files do.
std::string bash_completion(const std::vector<CompletedCommand>& commands);
std::string zsh_completion(const std::vector<CompletedCommand>& commands);

}  // namespace tw::cli
