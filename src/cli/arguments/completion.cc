// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>

namespace tw::cli {
namespace {

void collect(const CLI::App& app, const std::string& place, std::vector<CompletedCommand>& all) {
  const auto commands =
      app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
  CompletedCommand own{place, {}};
  for (const CLI::App* command : commands)
    own.words.push_back({command->get_name(), command->get_description()});
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames())
      own.words.push_back({"--" + name, option->get_description()});
  }
  all.push_back(std::move(own));
  for (const CLI::App* command : commands) collect(*command, place + " " + command->get_name(), all);
}

/// In single quotes, for a shell.
std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// The lines that look whether `word` names a command at `place`. They stand in a loop over the words before
/// the cursor.
std::string find_place(const std::vector<CompletedCommand>& commands) {
  std::vector<std::string> places;
  for (const CompletedCommand& command : commands)
    if (!command.place.empty()) places.push_back(in_quotes(command.place));
  return fmt::format("    case \"$place $word\" in\n      {}) place=\"$place $word\" ;;\n    esac\n",
                     fmt::join(places, " | "));
}

/// `begin`, a loop over the words before the cursor, then for each command the lines that `known` writes of
/// its words, and `end`.
std::string script(const std::vector<CompletedCommand>& commands, const std::string& begin,
                   const std::function<std::string(const CompletedCommand&)>& known, const std::string& end) {
  std::string text = begin + find_place(commands) + "  done\n  case \"$place\" in\n";
  for (const CompletedCommand& command : commands)
    text += fmt::format("    {}){} ;;\n", in_quotes(command.place), known(command));
  return text + "  esac\n" + end;
}

}  // namespace

std::vector<CompletedCommand> completed_commands(const CLI::App& app) {
  std::vector<CompletedCommand> all;
  collect(app, "", all);
  return all;
}

std::string bash_completion(const std::vector<CompletedCommand>& commands) {
  const auto known = [](const CompletedCommand& command) {
    std::string names;
    for (const auto& word : command.words) names += (names.empty() ? "" : " ") + word.name;
    return " known=" + in_quotes(names);
  };
  return script(commands,
                "# bash completion of tw: source <(tw completion bash)\n"
                "_tw() {\n"
                "  local place='' word known='' current=${COMP_WORDS[COMP_CWORD]}\n"
                "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n",
                known,
                "  mapfile -t COMPREPLY < <(compgen -W \"$known\" -- \"$current\")\n"
                "  if [[ ${#COMPREPLY[@]} -eq 0 && $current != -* ]]; then\n"
                "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
                "    compopt -o filenames\n"
                "  fi\n"
                "}\n"
                "complete -F _tw tw\n");
}

std::string zsh_completion(const std::vector<CompletedCommand>& commands) {
  const auto known = [](const CompletedCommand& command) {
    std::string lines = "\n      known=(\n";
    for (const auto& word : command.words)
      lines += fmt::format("        {}\n", in_quotes(word.name + ":" + word.about));
    return lines + "      )";
  };
  return script(commands,
                "#compdef tw\n"
                "# zsh completion of tw: tw completion zsh > \"${fpath[1]}/_tw\"\n"
                "_tw() {\n"
                "  local place='' word\n"
                "  local -a known\n"
                "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n",
                known,
                "  _describe 'tw' known || _files\n"
                "}\n"
                "_tw \"$@\"\n");
}

}  // namespace tw::cli
