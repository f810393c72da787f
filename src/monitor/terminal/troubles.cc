// SPDX-License-Identifier: Apache-2.0
#include "monitor/terminal/troubles.h"

#include <fmt/format.h>

#include <utility>

#include "base/peer_name.h"

namespace tw::monitor {

using event::Cause;
using world::Event;

constexpr std::size_t kMostRefusals = 64;

std::optional<std::string> Troubles::Writes::line_for(const Event& event, const auto& written,
                                                      const char* one, const char* many, bool is_last) {
  if (written.cause == Cause::none) {
    const std::uint64_t missing = std::exchange(failed, 0);
    why.clear();
    if (missing == 0) return std::nullopt;
    return fmt::format("round {}: {} are written again; {} could not be", event.round, many, missing);
  }
  const bool was_tried = written.took_s.has_value();
  if (was_tried) why = event.why;
  const bool was_told = failed++ > 0;
  if (was_tried && is_last) return fmt::format("round {}: no {}: {}", event.round, one, event.why);
  if (was_told) return std::nullopt;
  if (!was_tried) return event.why;
  return fmt::format("round {}: no {}, training goes on: {}", event.round, one, event.why);
}

/// A lone peer is the majority of its own last record: only the first of its rounds is marked.
std::optional<std::string> Troubles::alone_line(Round round, const event::Commit& commit) {
  if (commit.cause != Cause::minority) {
    if (commit.members > members_then_) alone_from_.reset();
    return std::nullopt;
  }
  if (alone_from_) return std::nullopt;
  alone_from_ = round;
  members_then_ = commit.members;
  return fmt::format(
      "round {} was decided without a majority of the members: if the others trained on, this peer gives up "
      "its rounds from then on when it meets them",
      round);
}

std::optional<std::string> Troubles::restore_line(const Event& event, const event::Restore& restored) {
  if (restored.cause == Cause::anew)
    return fmt::format("goes on alone after round {}: {}", event.round, event.why);
  if (restored.cause != Cause::none || restored.digest.empty() || !alone_from_) return std::nullopt;
  return fmt::format(
      "gave up its rounds from {} on, which it had decided without a majority, for the state of the others "
      "after round {}",
      *std::exchange(alone_from_, std::nullopt), event.round);
}

/// A peer with a valid token that trains something else: a mistake of its user, who may look at this peer
/// alone.
std::optional<std::string> Troubles::refuse_line(const Event& event, Cause cause) {
  if (cause == Cause::own) return fmt::format("round {}: {}", event.round, event.why);
  const bool differs = cause == Cause::run || cause == Cause::parameters;
  if (!event.peer || !differs) return std::nullopt;
  refused_ = fmt::format("peer {} was refused: {}", peer_name(*event.peer), event.why);
  if (refusals_told_.size() >= kMostRefusals || !refusals_told_.insert(refused_).second) return std::nullopt;
  return refused_ + "; its own message says what it has instead";
}

std::optional<std::string> Troubles::line_for(const Event& event) {
  const bool is_last = last_round_ && event.round >= *last_round_;
  if (const auto* saved = event.as<event::Checkpoint>()) {
    if (saved->cause == Cause::skipped) return "skipped a checkpoint: " + event.why;
    return checkpoints_.line_for(event, *saved, "checkpoint", "checkpoints", is_last);
  }
  if (const auto* copied = event.as<event::Copy>())
    return copies_.line_for(event, *copied, "copy in checkpoint.to", "copies in checkpoint.to", is_last);
  if (const auto* commit = event.as<event::Commit>()) {
    last_round_ = commit->last ? std::optional(event.round) : std::nullopt;
    refused_.clear();  // nobody waited for that peer; it dials again as long as it is there
    return alone_line(event.round, *commit);
  }
  if (const auto* restored = event.as<event::Restore>()) return restore_line(event, *restored);
  if (event.as<event::Budget>()) return event.why;
  if (const auto* refusal = event.as<event::Refuse>()) return refuse_line(event, refusal->cause);
  return std::nullopt;
}

}  // namespace tw::monitor
