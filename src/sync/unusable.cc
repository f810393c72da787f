// SPDX-License-Identifier: Apache-2.0
#include "sync/unusable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "sync/checkpoint.h"

namespace tw::sync {
namespace {

using Lines = std::vector<std::string>;

Lines facts_of(const RunWords& words) {
  Lines facts;
  for (std::string_view text : {std::string_view(words.facts), std::string_view(words.layout)}) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      if (end != 0) facts.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  return facts;
}

/// Those of the first that are not among the second, in their order.
Lines without(const Lines& facts, const Lines& others) {
  Lines rest;
  std::ranges::copy_if(facts, std::back_inserter(rest), [&](const std::string& fact) {
    return std::ranges::find(others, fact) == others.end();
  });
  return rest;
}

/// The one most like it that has its name, which ends at a sign or a space. Null: none.
const std::string* counterpart(const std::string& fact, const Lines& others) {
  std::size_t most = fact.find_first_of("=: ");
  const std::string* found = nullptr;
  for (const std::string& other : others) {
    const auto same = static_cast<std::size_t>(std::ranges::mismatch(fact, other).in1 - fact.begin());
    if (same <= most) continue;
    most = same;
    found = &other;
  }
  return found;
}

std::string there_and_here(const std::string* there, const std::string* here) {
  const auto quoted = [](const std::string* fact) { return fact == nullptr ? "nothing" : '"' + *fact + '"'; };
  return fmt::format("there {}, here {}", quoted(there), quoted(here));
}

}  // namespace

std::vector<std::string> lines_by_reason(const std::vector<UnusableCheckpoint>& files) {
  std::vector<std::pair<std::string, Lines>> reasons;
  for (const UnusableCheckpoint& file : files) {
    const auto known = std::ranges::find(reasons, file.why, &std::pair<std::string, Lines>::first);
    Lines& names = known == reasons.end() ? reasons.emplace_back(file.why, Lines()).second : known->second;
    names.push_back(file.name);
  }
  constexpr std::size_t kMostNames = 3;
  Lines lines;
  for (const auto& [why, names] : reasons) {
    const std::size_t shown = std::min(names.size(), kMostNames);
    const std::string more = shown < names.size() ? fmt::format(" and {} more", names.size() - shown) : "";
    lines.push_back(fmt::format(
        "{}{}: {}", fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "), more, why));
  }
  return lines;
}

std::vector<std::string> passed_over(const std::vector<UnusableCheckpoint>& files, Round from) {
  std::vector<UnusableCheckpoint> passed;
  for (const UnusableCheckpoint& file : files) {
    if (file.round < from) continue;
    passed.push_back(file);
    if (file.damaged) passed.back().why += "; the file is removed once the run is past its round";
  }
  return lines_by_reason(passed);
}

std::string difference(const RunWords& there, const RunWords& here) {
  const Lines theirs = facts_of(there), ours = facts_of(here);
  const Lines only_there = without(theirs, ours), only_here = without(ours, theirs);
  if (!only_there.empty())
    return there_and_here(&only_there.front(), counterpart(only_there.front(), only_here));
  if (!only_here.empty()) return there_and_here(nullptr, &only_here.front());
  const auto [one, other] = std::ranges::mismatch(theirs, ours);
  if (one == theirs.end() && other == ours.end()) return "the number of its parameters differs";
  return there_and_here(one == theirs.end() ? nullptr : &*one, other == ours.end() ? nullptr : &*other);
}

}  // namespace tw::sync
