// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/events.h"

#include <fmt/format.h>

namespace tw::sim {

void History::add(const std::string& line) {
  digest_ = digest_of(to_string(digest_) + line);
  if (keep_lines_) lines_.push_back(line);
}

void History::note(Instant now, const std::string& what) {
  add(fmt::format("{:.9f} {}", to_seconds(now.time_since_epoch()), what));
}

void VirtualEvents::emit(const world::Event& event) {
  std::string line = fmt::format("{:.9f} {} {} {}", to_seconds(event.at.time_since_epoch()), self_.value,
                                 name_of(event.phase), event.round);
  if (event.peer) line += fmt::format(" peer={}", event.peer->value);
  if (event.cause != world::Cause::none) line += fmt::format(" {}", name_of(event.cause));
  if (!event.why.empty()) line += fmt::format(" \"{}\"", event.why);
  for (const auto& [name, value] : event.numbers) line += fmt::format(" {}={}", name, value);
  for (const auto& [name, text] : event.texts) line += fmt::format(" {}={}", name, text);
  if (!event.digest.empty()) line += " " + event.digest;
  history_.add(line);
  watch_(self_, event);
}

}  // namespace tw::sim
