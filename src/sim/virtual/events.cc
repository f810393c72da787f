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

namespace {

/// The facts of an event as the words of its line.
struct Told {
  std::string cause, numbers, texts, digest;

  void operator()(std::string_view name, const std::string& text, std::string_view) {
    if (name == "digest") {
      digest = text;
    } else if (!text.empty() && name != "source") {
      texts += fmt::format(" {}={}", name, text);
    }
  }

  void operator()(std::string_view name, std::uint64_t count, std::string_view) {
    numbers += fmt::format(" {}={}", name, count);
  }

  void operator()(std::string_view name, double value, std::string_view) {
    numbers += fmt::format(" {}={}", name, value);
  }

  template <class Value>
  void operator()(std::string_view name, const std::optional<Value>& value, std::string_view meaning) {
    if (value) (*this)(name, *value, meaning);
  }

  void operator()(std::string_view name, bool flag, std::string_view) {
    if (flag) numbers += fmt::format(" {}=1", name);
  }

  void operator()(std::string_view, event::Cause told, std::string_view) { cause = name_of(told); }

  void operator()(std::string_view, const std::vector<PeerId>&, std::string_view) {}

  void operator()(std::string_view prefix, const event::CountsOf& of, std::string_view meaning) {
    for (const auto& [key, count] : of) (*this)(std::string(prefix) + key, count, meaning);
  }

  template <class Value>
  void operator()(std::string_view prefix, const std::vector<std::pair<PeerId, Value>>& of,
                  std::string_view meaning) {
    for (const auto& [peer, value] : of) (*this)(fmt::format("{}{}", prefix, peer.value), value, meaning);
  }
};

Told told_by(const world::Event& event) {
  Told told;
  std::visit([&](const auto& fact) { fact.fields(fact, told); }, event.fact);
  return told;
}

}  // namespace

void VirtualEvents::emit(const world::Event& event) {
  std::string line = fmt::format("{:.9f} {} {} {}", to_seconds(event.at.time_since_epoch()), self_.value,
                                 name_of(event.phase()), event.round);
  if (event.peer) line += fmt::format(" peer={}", event.peer->value);
  const Told told = told_by(event);
  if (!told.cause.empty()) line += " " + told.cause;
  if (!event.why.empty()) line += fmt::format(" \"{}\"", event.why);
  line += told.numbers + told.texts;
  if (!told.digest.empty()) line += " " + told.digest;
  history_.add(line);
  watch_(self_, event);
}

}  // namespace tw::sim
