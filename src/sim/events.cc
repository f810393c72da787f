// SPDX-License-Identifier: Apache-2.0
#include "sim/events.h"

#include <fmt/format.h>

namespace tw {

void History::add(const std::string& line) {
  digest_ = digest_of(to_string(digest_) + line);
  if (keep_lines_) lines_.push_back(line);
}

const char* phase_word(Phase phase) {
  switch (phase) {
    case Phase::accumulate:
      return "accumulate";
    case Phase::call:
      return "call";
    case Phase::scatter:
      return "scatter";
    case Phase::gather:
      return "gather";
    case Phase::commit:
      return "commit";
    case Phase::apply:
      return "apply";
    case Phase::wait:
      return "wait";
    case Phase::lead:
      return "lead";
    case Phase::join:
      return "join";
    case Phase::leave:
      return "leave";
    case Phase::lost:
      return "lost";
    case Phase::reissue:
      return "reissue";
    case Phase::restore:
      return "restore";
    case Phase::checkpoint:
      return "checkpoint";
    case Phase::evaluate:
      return "evaluate";
    case Phase::refuse:
      return "refuse";
    case Phase::start:
      return "start";
    case Phase::stop:
      return "stop";
    case Phase::kill:
      return "kill";
  }
  return "?";
}

void VirtualEvents::emit(const Event& event) {
  std::string line = fmt::format("{:.9f} {} {} {}", to_seconds(event.at.time_since_epoch()), self_.value,
                                 phase_word(event.phase), event.round);
  if (event.peer) line += fmt::format(" peer={}", event.peer->value);
  if (!event.why.empty()) line += fmt::format(" \"{}\"", event.why);
  for (const auto& [name, value] : event.numbers) line += fmt::format(" {}={}", name, value);
  if (!event.digest.empty()) line += " " + event.digest;
  history_.add(line);
  watch_(self_, event);
}

}  // namespace tw
