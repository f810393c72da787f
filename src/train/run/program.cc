// SPDX-License-Identifier: Apache-2.0
#include "train/run/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/text/field_values.h"

namespace tw::train {
namespace {

using Words = std::vector<std::string>;

/// A list alone: a line would have to be split as a shell does.
struct CommandPlace {
  Words* at;
};

/// A word, or a list of them.
struct LinesPlace {
  Words* at;
};

struct VariablesPlace {
  std::map<std::string, std::optional<std::string>>* at;
};

using ProgramPlace = std::variant<CommandPlace, LinesPlace, VariablesPlace, std::string*>;

struct ProgramField : Field<ProgramOptions, ProgramPlace> {};

constexpr ProgramField kProgramFields[] = {
    {"program", "command", "the program that tw up starts as a peer, word by word; no shell reads it",
     [](ProgramOptions& o) -> ProgramPlace { return CommandPlace{&o.command}; }},
    {"program", "files", "files and folders beside the run file that the program needs; tw up copies them",
     [](ProgramOptions& o) -> ProgramPlace { return LinesPlace{&o.files}; }},
    {"program", "setup",
     "lines of sh that run in the program's folder before it starts, once on each machine; again when a line "
     "or a file that it names changes",
     [](ProgramOptions& o) -> ProgramPlace { return LinesPlace{&o.setup}; }},
    {"program", "env",
     "variables of its environment; without a value: that of tw up's own environment; \"\": an empty one",
     [](ProgramOptions& o) -> ProgramPlace { return VariablesPlace{&o.env}; }},
    {"program", "image", "container image of skypilot and k8s, as tw up --image",
     [](ProgramOptions& o) -> ProgramPlace { return &o.image; }},
};

struct ProgramExpectation : ExpectedValue {
  using ExpectedValue::operator();

  std::string operator()(const CommandPlace&) const { return "a list of words such as [python3, train.py]"; }

  std::string operator()(const LinesPlace&) const { return "one or a list"; }

  std::string operator()(const VariablesPlace&) const { return "KEY: VALUE pairs"; }
};

struct WrittenProgram : WrittenValue {
  using WrittenValue::operator();

  template <class ListPlace>

  requires std::is_class_v<ListPlace> std::string operator()(const ListPlace&) const { return ""; }
};

struct ProgramAssignment : ValueAssignment {
  using ValueAssignment::operator();

  std::string operator()(const CommandPlace& place) const {
    if (!given.is_list || given.words.empty() || given.words.front().empty()) return complaint();
    *place.at = given.words;
    return "";
  }

  std::string operator()(const LinesPlace& place) const {
    for (const std::string& word : given.words)
      if (word.empty()) return complaint();
    *place.at = given.words;
    return "";
  }

  std::string operator()(const VariablesPlace&) const { return complaint(); }
};

bool is_variable_name(const std::string& name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

void read_variables(const Tree& map, const std::string& where, Complaints& complaints,
                    ProgramOptions& program) {
  if (!map.is_map()) return complaints.add(where, "expected KEY: VALUE pairs");
  complaints.for_each_key(map, where, "program.env", [&](const Tree& value, const std::string& here) {
    if (!is_variable_name(value.key))
      return complaints.add(here, "expected a name of letters, digits and _, a letter first");
    if (value.key.starts_with("TRADEWIND_"))
      return complaints.add(here, "tw up sets these itself; give the key of the run file, or --set");
    if (value.is_list() || value.is_map()) return complaints.add(here, "expected one value");
    program.env[value.key] = value.is_word() ? std::optional(value.word) : std::nullopt;
  });
}

/// YAML reads null and ~ as nothing, which is no word.
void check_words(const Tree& list, const std::string& where, Complaints& complaints) {
  const auto nothing = std::ranges::find(list.items, Tree::Kind::nothing, &Tree::kind);
  if (nothing == list.items.end()) return;
  complaints.add(where,
                 fmt::format("word {} is null, ~ or left out, which YAML reads as nothing; write it in "
                             "quotes, such as \"null\", or \"\" for an empty word",
                             nothing - list.items.begin() + 1));
}

}  // namespace

void read_program(const Tree& section, const std::string& where, Complaints& complaints,
                  ProgramOptions& program) {
  complaints.for_each_key(section, where, "program", [&](const Tree& value, const std::string& here) {
    const auto* field = find_field<ProgramField>(kProgramFields, "program", value.key);
    if (field == nullptr)
      return complaints.add(here, unknown_field<ProgramField>(kProgramFields, "program", value.key));
    if (value.key == "env") return read_variables(value, here, complaints, program);
    const auto given = complaints.given(value, here, expected_at<ProgramExpectation>(*field, program));
    if (!given) return;
    if (value.key == "command") check_words(value, here, complaints);
    const std::string wrong = assign_field<ProgramExpectation, ProgramAssignment>(*field, *given, program);
    if (!wrong.empty()) complaints.add(here, wrong);
  });
  if (complaints.empty() && program.command.empty())
    complaints.add(where, "program.command is missing; expected a list of words such as [python3, train.py]");
}

std::string program_reference() {
  return reference_of<ProgramExpectation, WrittenProgram, ProgramField>(kProgramFields, ProgramOptions());
}

}  // namespace tw::train
