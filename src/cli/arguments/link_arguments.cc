// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments/link_arguments.h"

#include <CLI/CLI.hpp>

#include "peer/spelling.h"

namespace tw::cli {
void describe_link(CLI::App& command, const peer::LinkField& field, peer::LinkOptions& links) {
  const std::string name = peer::spelled(peer::Spelling::command_line, field.name).name;
  const std::string meaning(field.meaning);
  const auto place = field.place(links);
  if (auto* const* on = std::get_if<bool*>(&place)) command.add_flag(name, **on, meaning);
  if (auto* const* list = std::get_if<std::vector<std::string>*>(&place))
    command.add_option(name, **list, meaning)->allow_extra_args(false);
  if (auto* const* text = std::get_if<std::string*>(&place))
    command.add_option(name, **text, meaning)->capture_default_str();
}

void forget_defaults(peer::LinkOptions& links) {
  for (const peer::LinkField& field : peer::link_fields()) {
    const auto place = field.place(links);
    if (auto* const* text = std::get_if<std::string*>(&place)) (*text)->clear();
  }
}

std::vector<std::pair<std::string, std::string>> variables_of(const peer::LinkOptions& links) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const peer::LinkField& field : peer::link_fields())
    if (std::string value = peer::value_of(field, links); !value.empty())
      variables.emplace_back(peer::variable_of(field.name), std::move(value));
  return variables;
}

}  // namespace tw::cli
