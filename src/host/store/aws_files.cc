// SPDX-License-Identifier: Apache-2.0
#include "host/store/aws_files.h"

#include <fmt/format.h>

#include <cctype>
#include <sstream>
#include <string_view>

#include "base/text/text.h"

namespace tw::host {
namespace {

using Sections = std::map<std::string, AwsProfile>;

/// `profile x` of "[profile  "x"] # note".
std::string name_of_section(std::string_view line) {
  std::string name;
  for (const char c : line.substr(1, line.find(']') - 1)) {
    const bool is_space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (c == '"' || c == '\'' || (is_space && (name.empty() || name.ends_with(' ')))) continue;
    name += is_space ? ' ' : c;
  }
  if (name.ends_with(' ')) name.pop_back();
  return name;
}

/// As the AWS tools read it (Python's configparser): a comment is a line of its own, = or : ends a key,
/// deeper lines belong to a key without a value. The first of two equal keys counts.
Sections sections_of(std::string_view text) {
  Sections all;
  AwsProfile* section = nullptr;
  std::string above;      // a key without a value
  std::size_t depth = 0;  // of the last key that is below no other
  std::istringstream lines{std::string(without_byte_order_mark(text))};
  for (std::string line; std::getline(lines, line);) {
    while (line.ends_with('\r')) line.pop_back();
    const std::string_view plain = trimmed(line);
    if (plain.empty() || plain.starts_with('#') || plain.starts_with(';')) continue;
    if (plain.starts_with('[')) {
      section = &all[name_of_section(plain)];
      above.clear();
      continue;
    }
    const std::size_t sign = plain.find_first_of("=:");
    if (section == nullptr || sign == std::string_view::npos) continue;
    std::string key = lower(trimmed(plain.substr(0, sign)));
    const std::string value(trimmed(plain.substr(sign + 1)));
    const std::size_t indent = line.find_first_not_of(" \t");
    if (!above.empty() && indent > depth) {
      key = above + "." + key;
    } else {
      depth = indent;
      above = value.empty() ? key : "";
    }
    section->try_emplace(std::move(key), value);
  }
  return all;
}

}  // namespace

void AwsFiles::add_trouble(const std::string& why) { trouble += (trouble.empty() ? "" : "; ") + why; }

std::string profile_name(const Environment& environment) {
  const std::string named = environment("AWS_PROFILE");
  return named.empty() ? "default" : named;
}

AwsProfile profile_in(const AwsFiles& files, const std::string& name) {
  const Sections credentials = sections_of(files.credentials), config = sections_of(files.config);
  AwsProfile profile;
  const auto add = [&](const Sections& sections, const std::string& section) {
    if (const auto found = sections.find(section); found != sections.end())
      profile.insert(found->second.begin(), found->second.end());  // those that are not there yet
  };
  add(credentials, name);
  if (name == "default") add(config, name);
  add(config, "profile " + name);
  if (const auto services = profile.find("services"); services != profile.end())
    add(config, "services " + services->second);
  return profile;
}

AwsFiles of_profile(const Environment& environment, const AwsFiles& files) {
  const std::string name = profile_name(environment);
  std::string text;
  for (const auto& [key, value] : profile_in(files, name)) text += fmt::format("{}={}\n", key, value);
  return {text.empty() ? text : fmt::format("[{}]\n{}", name, text), {}, files.trouble};
}

}  // namespace tw::host
