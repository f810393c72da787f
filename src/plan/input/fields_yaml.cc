// SPDX-License-Identifier: Apache-2.0
#include "plan/input/fields_yaml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <utility>

#include "base/text/fields.h"

namespace tw::plan {

namespace {

/// Nested aliases can expand to more values than memory holds.
constexpr std::size_t kMostFields = 10'000;

}  // namespace

class YamlFlattening {
 public:
  explicit YamlFlattening(YamlFields& fields) : fields_(fields) {}

  Status take(const YAML::Node& node, const std::string& name) {
    if (node.IsMap()) {
      for (const auto& entry : node) {
        const std::string key = entry.first.Scalar();
        const Status taken = take(entry.second, name.empty() ? key : name + "." + key);
        if (!taken) return taken;
      }
      return Unit{};
    }
    const int line = node.Mark().line + 1;
    if (name.empty()) return Error{fmt::format("{}:{}: expected names with values", fields_.file_, line)};
    std::string value;
    for (const auto& item : node.IsSequence() ? std::vector<YAML::Node>(node.begin(), node.end())
                                              : std::vector<YAML::Node>{node}) {
      if (!item.IsScalar())
        return Error{
            fmt::format("{}:{}: {}: expected a value or a list of values", fields_.file_, line, name)};
      value += (value.empty() ? "" : ";") + item.Scalar();
    }
    if (!fields_.fields_.try_emplace(name, YamlFields::Field{value, line, false}).second)
      return Error{fmt::format("{}:{}: {}: given twice", fields_.file_, line, name)};
    if (fields_.fields_.size() > kMostFields)
      return Error{fmt::format("{}:{}: expected at most {} values", fields_.file_, line, kMostFields)};
    return Unit{};
  }

 private:
  YamlFields& fields_;
};

Result<YamlFields> YamlFields::read(const std::string& file, std::string_view text) {
  YamlFields fields;
  fields.file_ = file;
  try {
    const Status taken = YamlFlattening(fields).take(YAML::Load(std::string(text)), "");
    if (!taken) return taken.error();
  } catch (const YAML::Exception& e) {
    return Error{fmt::format("{}:{}: {}", file, e.mark.line + 1, e.msg)};
  }
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

std::vector<std::pair<std::string, std::string>> YamlFields::map(const std::string& name) {
  known_.insert(name);
  std::vector<std::pair<std::string, std::string>> entries;
  for (auto& [key, field] : fields_) {
    if (!key.starts_with(name + ".")) continue;
    field.used = true;
    entries.emplace_back(key.substr(name.size() + 1), field.value);
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
  for (const auto& [name, field] : fields_)
    if (!field.used) problems.push_back(unknown(name, field.line));
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
