// SPDX-License-Identifier: Apache-2.0
#include "e2e/soak/line_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>

namespace tw::soak {
namespace {

bool is_of_every_round(world::Phase phase) { return is_stage(phase) || phase == world::Phase::lead; }

}  // namespace

std::string without_numbers(std::string_view line) {
  std::string text;
  for (const char c : line) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) {
      text.push_back(c);
    } else if (text.empty() || text.back() != '#') {
      text.push_back('#');
    }
  }
  return text;
}

void LineJudge::see(const std::string& speaker, std::string_view line) {
  const std::string text = without_numbers(line);
  // One in 2 s at most tells how far training is.
  if (!text.empty() && !text.starts_with("round #  # peers")) ++counts_[{speaker, text}];
}

void LineJudge::see(const monitor::LogEntry& entry) {
  const world::Event& event = entry.event;
  const auto* saved = event.as<event::Checkpoint>();
  const bool durable = saved && saved->cause == event::Cause::none;
  if (is_of_every_round(event.phase()) || durable) return;
  const std::string about = event.peer ? fmt::format(" peer {}", event.peer->value) : "";
  ++counts_[{fmt::format("event log of peer {}", entry.writer.value),
             without_numbers(fmt::format("{}{}: {}", name_of(event.phase()), about, event.why))}];
}

std::vector<std::string> LineJudge::repeated(std::size_t most) const {
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const auto& [said, count] : counts_) {
    if (count > most)
      found.emplace_back(count, fmt::format("{} says {} times: {}", said.first, count, said.second));
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  std::vector<std::string> lines;
  for (auto& [count, line] : found) lines.push_back(std::move(line));
  return lines;
}

}  // namespace tw::soak
