// SPDX-License-Identifier: Apache-2.0
#include "plan/input/fields_yaml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "base/result.h"
#include "base/text/fields.h"
#include "market/gpu_name.h"

namespace tw::plan {

Status YamlFields::take(const Tree& value, const std::string& name) {
  const std::string place = fmt::format("{}:{}: ", file_, value.line);
  if (value.is_map()) {
    for (const Tree& entry : value.items)
      if (const Status taken = take(entry, name.empty() ? entry.key : name + "." + entry.key); !taken)
        return taken;
    return Unit{};
  }
  if (name.empty()) return Error{place + "expected names with values"};
  std::vector<std::string> words = {value.word};
  if (value.is_list()) words.clear();
  bool plain = value.is_word() || value.is_list();
  for (const Tree& item : value.items) {
    plain = plain && item.is_word();
    words.push_back(item.word);
  }
  if (!plain) return Error{place + name + ": expected a value or a list of values"};
  const Field field{fmt::format("{}", fmt::join(words, ";")), value.line, false};
  if (!fields_.try_emplace(name, field).second) return Error{place + name + ": given twice"};
  return Unit{};
}

Result<YamlFields> YamlFields::read(const std::string& file, std::string_view text) {
  TW_TRY(const auto tree, parse_yaml(file, text));
  YamlFields fields;
  fields.file_ = file;
  TW_TRY(fields.take(tree, ""));
  return fields;
}

std::string YamlFields::text(const std::string& name) {
  known_.insert(name);
  const auto found = fields_.find(name);
  if (found == fields_.end()) return "";
  found->second.used = true;
  return found->second.value;
}

std::string YamlFields::word(const std::string& name) {
  const std::string value = text(name);
  if (value.empty()) complain(name, "a value");
  return value;
}

std::vector<std::string> YamlFields::words(const std::string& name) {
  std::vector<std::string> words;
  std::istringstream in(text(name));
  for (std::string word; std::getline(in, word, ';');) words.push_back(word);
  return words;
}

double YamlFields::number(const std::string& name, CsvRange range) {
  const NumberBounds bounds{.low = range.least, .high = range.most};
  const auto number = number_in<double>(text(name), bounds);
  if (!number) complain(name, number_text(bounds));
  return number.value_or(0);
}

double YamlFields::number_or(const std::string& name, double other, CsvRange range) {
  if (has(name)) return number(name, range);
  known_.insert(name);
  return other;
}

int YamlFields::count_or(const std::string& name, int other, CsvRange range) {
  return has(name) ? count(name, range) : other;
}

int YamlFields::count(const std::string& name, CsvRange range) {
  const NumberBounds bounds{.low = range.least, .high = range.most};
  const auto number = number_in<double>(text(name), bounds);
  const bool whole = number && *number == std::floor(*number);
  if (!whole) complain(name, whole_number_text(bounds));
  return whole ? static_cast<int>(*number) : 0;
}

std::vector<std::pair<std::string, std::string>> YamlFields::map(const std::string& name,
                                                                 const std::string& words) {
  if (!text(name).empty()) complain(name, "a map, " + words);
  std::vector<std::pair<std::string, std::string>> entries;
  for (auto& [key, field] : fields_) {
    if (!key.starts_with(name + ".")) continue;
    field.used = true;
    entries.emplace_back(key.substr(name.size() + 1), field.value);
  }
  return entries;
}

std::vector<GpuField> YamlFields::gpu_map(const std::string& name, const std::string& words) {
  std::vector<GpuField> entries;
  for (const auto& [key, value] : map(name, words)) {
    const GpuField entry{market::gpu_name(key), name + "." + key, value};
    if (std::ranges::find(entries, entry.gpu, &GpuField::gpu) != entries.end())
      complain(entry.name, "one value for " + entry.gpu);
    entries.push_back(entry);
  }
  return entries;
}

void YamlFields::complain(const std::string& name, const std::string& expected) {
  if (problem_) return;
  const auto found = fields_.find(name);
  problem_ = found == fields_.end()
                 ? Error{fmt::format("{}: {} is missing: expected {}", file_, name, expected)}
                 : Error{fmt::format("{}:{}: {} {}: expected {}", file_, found->second.line, name,
                                     found->second.value, expected)};
}

Status YamlFields::finish() const {
  std::vector<std::string> problems;
  for (const auto& [name, field] : fields_) {
    // What was asked for and not read is in the way of another one, as the problem says.
    const bool is_told = problem_ && known_.contains(name);
    if (!field.used && !is_told) problems.push_back(unknown(name, field.line));
  }
  // A missing value may be the one with the misspelt name: unknown names come first.
  if (problem_) problems.push_back(problem_->message);
  if (problems.empty()) return Unit{};
  return Error{fmt::format("{}", fmt::join(problems, "\n"))};
}

std::string YamlFields::unknown(const std::string& name, int line) const {
  std::vector<KnownKey> known;
  for (const std::string& one : known_) known.push_back({one, one});
  return fmt::format("{}:{}: {}: {}", file_, line, name, unknown_key(name, known));
}

bool YamlFields::has(const std::string& name) {
  known_.insert(name);
  return fields_.find(name) != fields_.end();
}

}  // namespace tw::plan
