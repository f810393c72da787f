// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments/link_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "peer/spelling.h"

namespace tw::cli {
namespace {

using Texts = std::vector<std::string>;

/// Empty: not given.
std::string value_of(const peer::LinkField::Place& place) {
  if (auto* const* on = std::get_if<bool*>(&place)) return **on ? "1" : "";
  if (auto* const* list = std::get_if<Texts*>(&place)) return fmt::format("{}", fmt::join(**list, ","));
  return **std::get_if<std::string*>(&place);
}

}  // namespace

void describe_link(CLI::App& command, const peer::LinkField& field, peer::LinkOptions& links) {
  const std::string name = peer::spelled(peer::Spelling::command_line, field.name).name;
  const std::string meaning = peer::meaning_of(field, peer::Spelling::command_line);
  const auto place = field.place(links);
  if (auto* const* on = std::get_if<bool*>(&place)) command.add_flag(name, **on, meaning);
  if (auto* const* list = std::get_if<Texts*>(&place))
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
  peer::LinkOptions given = links;
  std::vector<std::pair<std::string, std::string>> variables;
  for (const peer::LinkField& field : peer::link_fields())
    if (std::string value = value_of(field.place(given)); !value.empty())
      variables.emplace_back(peer::variable_of(field.name), std::move(value));
  return variables;
}

}  // namespace tw::cli
