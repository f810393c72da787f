// SPDX-License-Identifier: Apache-2.0
#include "bind/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "base/result.h"
#include "base/text/fields.h"
#include "base/text/nearest_name.h"
#include "base/text/text.h"
#include "peer/link_options.h"
#include "peer/spelling.h"
#include "peer/values.h"
#include "train/run/run_fields.h"

namespace tw::bind {
namespace {

constexpr std::string_view kPrefix = "TRADEWIND_";
/// Variables that are no option of a peer: read here, by `tw run` and its processes, by the Python package
/// and its demo.
constexpr const char* kOtherVariables[] = {"RUN",      "SET",     "THREADS", "VERDICT",      "PROCESS",
                                           "LAUNCHER", "LIBRARY", "PROGRAM", "DEMO_RESULTS", "DEMO_ROUNDS"};

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    if (std::string word(trimmed(part)); !word.empty()) parts.push_back(std::move(word));
  return parts;
}

bool is_flag(const std::string& key) {
  if (const peer::LinkField* link = peer::find_link_field(key)) return peer::is_flag(*link);
  const train::RunField* field = train::find_run_field(key);
  return field != nullptr && train::is_flag(*field);
}

/// Flags are written in several ways, and are compared by what they say.
std::string plain(const std::string& key, const std::string& text) {
  const auto truth = is_flag(key) ? truth_in(text) : std::nullopt;
  return truth ? (*truth ? "true" : "false") : text;
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

  void add_default(const std::string& key, const std::string& value) {
    if (std::ranges::find(pairs_, key, &Pairs::value_type::first) == pairs_.end())
      pairs_.emplace_back(key, value);
  }

  Pairs take() { return std::move(pairs_); }

 private:
  /// A wrong word of either side stays, so that it is refused.
  Status silence(const std::vector<std::string>& values) {
    const auto writes = [](const std::string& word) { return word == "auto" || word == "line"; };
    for (auto& [name, value] : pairs_)
      if (name == "progress" && writes(value) && !writes(values.front())) value = values.front();
    return Unit{};
  }

  Pairs pairs_;
};

/// KEY=VALUE;KEY=VALUE, with whole keys.
Result<Pairs> pairs_in_set(const std::string& text) {
  Pairs pairs;
  for (const std::string& part : parts_of(text, ';')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos)
      return Error{fmt::format("TRADEWIND_SET has \"{}\": expected KEY=VALUE;KEY=VALUE", part)};
    const std::string key = train::whole_run_key(trimmed(part.substr(0, equals)));
    pairs.emplace_back(key, plain(key, std::string(trimmed(part.substr(equals + 1)))));
  }
  const std::string twice = train::given_twice(pairs);
  if (!twice.empty()) return Error{"TRADEWIND_SET: " + twice};
  return pairs;
}

/// The key of the run file with this last part, in any case; empty: there is none.
std::string key_like(const std::string& written) {
  const std::string name = lower(written);
  for (const FieldRow& row : train::run_rows({}))
    if (row.key == name || row.key.ends_with("." + name)) return row.key;
  return "";
}

/// Whether a finger slipped: two letters are swapped, or one is there twice.
bool is_slip(const std::string& written, const std::string& meant) {
  const auto once = [](std::string text) {
    text.erase(std::ranges::unique(text).begin(), text.end());
    return text;
  };
  return std::ranges::is_permutation(written, meant) || once(written) == once(meant);
}

/// The name of which this is a misspelling: one letter is wrong, not the first; where both are short, it is a
/// slip. Other programs have TRADEWIND_SIZE or TRADEWIND_REGION for themselves.
std::string misspelt(const std::string& written, const std::vector<std::string>& known) {
  constexpr std::size_t kShort = 4;
  const std::string meant = nearest_name(written, known);
  if (meant.empty() || meant.front() != written.front() || edit_distance(written, meant) > 1) return "";
  const bool is_long = std::max(written.size(), meant.size()) > kShort;
  return is_long || is_slip(written, meant) ? meant : "";
}

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
  TW_TRY(const auto set, pairs_in_set(variable("TRADEWIND_SET")));
  for (const auto& [key, value] : set) TW_TRY(all.add("TRADEWIND_SET", key, {value}));
  if (const std::string threads = variable("TRADEWIND_THREADS"); !threads.empty()) {
    TW_TRY(peer::parse_threads_option(peer::spelled(peer::Spelling::python, "threads"), threads));
    all.add_default("threads", threads);
  }
  return all.take();
}

std::vector<std::string> misspelt_variables(const std::vector<std::string>& names,
                                            const host::Environment& variable) {
  std::vector<std::string> known(std::begin(kOtherVariables), std::end(kOtherVariables));
  for (const peer::LinkField& field : peer::link_fields())
    known.push_back(peer::variable_of(field.name).substr(kPrefix.size()));
  std::vector<std::string> said;
  for (const std::string& name : names) {
    if (!name.starts_with(kPrefix)) continue;
    const std::string written = name.substr(kPrefix.size());
    if (std::ranges::find(known, written) != known.end()) continue;
    const std::string setting = key_like(written), meant = misspelt(written, known);
    if (!setting.empty()) {
      said.push_back(
          fmt::format("{} is not read: did you mean TRADEWIND_SET={}={}?", name, setting, variable(name)));
    } else if (!meant.empty()) {
      said.push_back(fmt::format("{} is not read: did you mean {}{}?", name, kPrefix, meant));
    }
  }
  std::ranges::sort(said);
  return said;
}

std::vector<std::string> let_rejoin_win(Pairs& all, const host::Environment& variable) {
  const std::string name = peer::variable_of("rejoin");
  std::vector<std::string> said;
  if (!truth_in(variable(name)).value_or(false)) return said;
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
