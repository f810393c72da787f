// SPDX-License-Identifier: Apache-2.0
#include "bind/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "base/result.h"
#include "base/text/text.h"
#include "peer/link_options.h"
#include "peer/spelling.h"
#include "train/run/run_fields.h"

namespace tw::bind {
namespace {

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    if (std::string word(trimmed(part)); !word.empty()) parts.push_back(std::move(word));
  return parts;
}

/// Flags are written in several ways.
std::string truth(const std::string& text) {
  if (text == "1" || text == "yes" || text == "on") return "true";
  if (text == "0" || text == "no" || text == "off") return "false";
  return text;
}

std::string plain(const std::string& key, const std::string& text) {
  const peer::LinkField* field = peer::find_link_field(key);
  return field != nullptr && peer::is_flag(*field) ? truth(text) : text;
}

/// The settings of a program, which grow by those of variables. Flags are true or false.
class Merged {
 public:
  explicit Merged(Pairs given) : pairs_(std::move(given)) {
    for (auto& [key, value] : pairs_) value = plain(key, value);
  }

  Status add(const std::string& variable, const std::string& key, std::vector<std::string> values) {
    for (std::string& value : values) value = plain(key, value);
    std::vector<std::string> before;
    for (const auto& [name, value] : pairs_)
      if (name == key) before.push_back(value);
    if (before.empty()) {
      for (const std::string& value : values) pairs_.emplace_back(key, value);
      return Unit{};
    }
    if (before == values) return Unit{};
    // One process of `tw run` writes lines; a program that wants none writes none.
    if (key == "progress") return silence(values);
    return Error{fmt::format("{} is {} in the program and {} in {}: leave one of them out", key,
                             fmt::join(before, ","), fmt::join(values, ","), variable)};
  }

  Pairs take() { return std::move(pairs_); }

 private:
  Status silence(const std::vector<std::string>& values) {
    for (auto& [name, value] : pairs_)
      if (name == "progress" && values.front() == "off") value = "off";
    return Unit{};
  }

  Pairs pairs_;
};

}  // namespace

Result<Pairs> with_environment(Pairs given, const host::Environment& variable) {
  Merged all(std::move(given));
  const std::string file = variable("TRADEWIND_RUN");
  if (!file.empty()) TW_TRY(all.add("TRADEWIND_RUN", "run_file", {file}));
  for (const peer::LinkField& field : peer::link_fields()) {
    const std::string name = peer::variable_of(field.name), value = variable(name);
    if (value.empty()) continue;
    TW_TRY(all.add(name, std::string(field.name),
                   peer::takes_several(field) ? parts_of(value, ',') : std::vector{value}));
  }
  if (const std::string gone = peer::variable_of("bootstrap"); !variable(gone).empty())
    return Error{fmt::format("{} {}", gone, peer::replacement_of("bootstrap"))};
  for (const std::string& part : parts_of(variable("TRADEWIND_SET"), ';')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos)
      return Error{fmt::format("TRADEWIND_SET has \"{}\": expected KEY=VALUE;KEY=VALUE", part)};
    const std::string key = train::whole_run_key(trimmed(part.substr(0, equals)));
    TW_TRY(all.add("TRADEWIND_SET", key, {std::string(trimmed(part.substr(equals + 1)))}));
  }
  return all.take();
}

std::vector<std::string> let_rejoin_win(Pairs& all, const host::Environment& variable) {
  const std::string name = peer::variable_of("rejoin");
  std::vector<std::string> said;
  if (truth(variable(name)) != "true") return said;
  std::erase_if(all, [&](const std::pair<std::string, std::string>& pair) {
    const bool of_first_start = (pair.first == "anew" || pair.first == "no_rejoin") && pair.second == "true";
    if (of_first_start)
      said.push_back(
          fmt::format("this process was started again ({}=1), and its run goes on: {} of the program "
                      "does not count",
                      name, peer::spelled_flag(peer::Spelling::python, pair.first)));
    return of_first_start;
  });
  return said;
}

}  // namespace tw::bind
