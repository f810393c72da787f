// SPDX-License-Identifier: Apache-2.0
#include "launch/engines/program_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace tw::launch {
namespace {

/// Prints the packages that the script imports at its top, and this Python lacks; nothing is imported.
constexpr const char* kImports =
    "import ast, importlib.util, os, sys\n"
    "names = {'torch', 'tradewind'}\n"
    "for file in sys.argv[1:]:\n"
    "    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))\n"
    "    for node in ast.parse(open(file, 'rb').read(), file).body:\n"
    "        if isinstance(node, ast.Import):\n"
    "            names |= {one.name for one in node.names}\n"
    "        elif isinstance(node, ast.ImportFrom) and not node.level:\n"
    "            names.add(node.module)\n"
    "heads = {name.split('.')[0] for name in names}\n"
    "print(*sorted(name for name in heads if name not in sys.modules and "
    "importlib.util.find_spec(name) is None))\n";

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// python, python3, python3.11
bool is_python(const std::string& word) {
  const std::string_view name = file_name(word);
  return name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == std::string_view::npos;
}

/// The script of `python3 -u train.py`; empty: none.
std::string script_of(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (command[i] == "-m" || command[i] == "-c") return "";
    if (!command[i].starts_with('-')) return command[i].ends_with(".py") ? command[i] : "";
  }
  return "";
}

/// Says it and ends the script.
std::string give_up(const std::string& words) {
  return fmt::format("{{ printf '%s\\n' {} >&3; exit 1; }}\n", words);
}

std::string python_probe(const std::vector<std::string>& command, const std::string& where,
                         const std::string& tw) {
  const std::string& python = command.front();
  std::string probe = fmt::format("path=${{PYTHONPATH:+$PYTHONPATH:}}$(dirname {})/python\n", tw);
  std::vector<std::string> words = {python, "-c", kImports};
  if (const std::string script = script_of(command); !script.empty()) words.push_back(script);
  probe += fmt::format("lacks=$(PYTHONPATH=$path {} 2>&1) || ", shell_line(words));
  probe += give_up(where + shell_word(fmt::format(": {} cannot be used: ", python)) +
                   "\"$(printf '%s\\n' \"$lacks\" | tail -n 1)\"");
  probe += "[ -z \"$lacks\" ] || ";
  probe += give_up(where + shell_word(": " + python + " there has no ") +
                   "\"$lacks: install it, or add a line to program.setup\"");
  return probe;
}

}  // namespace

std::string variables_file(const UserProgram& program) {
  std::string text;
  for (const auto& [name, value] : program.env)
    text += fmt::format("export {}={}\n", name, shell_word(value));
  return text;
}

std::string setup_lines(const UserProgram& program, const std::string& where) {
  std::string lines;
  if (!program.folders.empty()) lines = fmt::format("mkdir -p -- {}\n", shell_line(program.folders));
  if (program.setup.empty()) return lines;
  lines += fmt::format(
      "mark=../setup-{}-$(uname -n)\n(\nif command -v flock >/dev/null; then flock 8; fi\n"
      "if [ -e \"$mark\" ]; then exit 0; fi\n",
      program.setup_key);
  int number = 0;
  for (const std::string& line : program.setup) {
    const std::string which = where + shell_word(fmt::format(": line {} of program.setup ({})", ++number,
                                                             line.substr(0, line.find('\n'))));
    lines += fmt::format("printf '%s\\n' {}\n", which);
    lines += fmt::format(
        "sh -c {} </dev/null 8>&- || {{ code=$?; printf '%s\\n' {}\" ended with exit code $code\" ",
        shell_word(line), which);
    lines += ">&3; exit 1; }\n";
  }
  return lines + ": >\"$mark\"\n) 8>\"../setup-$(uname -n).lock\" || exit 1\n";
}

std::string probe_lines(const UserProgram& program, const std::string& where, const std::string& tw) {
  const std::string& first = program.command.front();
  std::string lines = fmt::format("command -v -- {} >/dev/null 2>&1 || ", shell_word(first));
  lines +=
      give_up(where + shell_word(fmt::format(
                          ": {}: no such program there: install it, or add a line to program.setup", first)));
  if (is_python(first)) lines += python_probe(program.command, where, tw);
  return lines;
}

std::string command_line(const Deployment& deployment) { return " " + shell_line(command_words(deployment)); }

}  // namespace tw::launch
