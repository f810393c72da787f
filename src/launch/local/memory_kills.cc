// SPDX-License-Identifier: Apache-2.0
#include "launch/local/memory_kills.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/text/number.h"
#include "base/text/split.h"
#include "base/text/text_file.h"

namespace tw::launch {
namespace {

/// Those that may have the counter, the narrowest first. A container sees its own group at the root.
std::vector<std::string> counter_files(const std::string& root) {
  std::vector<std::string> files;
  const std::string groups = root + "/sys/fs/cgroup";
  const auto own = read_text_file(root + "/proc/self/cgroup");
  for (const std::string& line : split(own ? own.value() : "", '\n')) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const std::string group = line.substr(parts[0].size() + parts[1].size() + 2);  // may have colons
    const bool is_first = parts[1] == "memory", is_second = parts[1].empty();
    const std::string folder = groups + (is_first ? "/memory" : "");
    const std::string name = is_first ? "/memory.oom_control" : "/memory.events";
    if (is_first || is_second) files.insert(files.end(), {folder + group + name, folder + name});
  }
  files.push_back(root + "/proc/vmstat");
  return files;
}

std::optional<std::uint64_t> counter_in(const std::string& file) {
  constexpr std::string_view kName = "oom_kill ";
  const auto text = read_text_file(file);
  for (const std::string& line : split(text ? text.value() : "", '\n'))
    if (line.starts_with(kName)) return parse_number<std::uint64_t>(line.substr(kName.size()));
  return std::nullopt;
}

}  // namespace

MemoryKills::MemoryKills(std::string root) : root_(std::move(root)), taken_(count()) {}

std::uint64_t MemoryKills::count() const {
  for (const std::string& file : counter_files(root_))
    if (const auto kills = counter_in(file)) return *kills;
  return 0;
}

bool MemoryKills::take() {
  const bool is_one = count() > taken_;
  taken_ += is_one ? 1 : 0;
  return is_one;
}

}  // namespace tw::launch
