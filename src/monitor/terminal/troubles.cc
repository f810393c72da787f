// SPDX-License-Identifier: Apache-2.0
#include "monitor/terminal/troubles.h"

#include <fmt/format.h>

#include <utility>

#include "base/peer_name.h"
#include "monitor/logs/event_log_json.h"

namespace tw::monitor {

using world::Cause;
using world::Event;
using world::Phase;

constexpr std::size_t kMostRefusals = 64;

std::optional<std::string> Troubles::Writes::line_for(const Event& event, const char* one, const char* many) {
  if (event.cause == Cause::none) {
    const std::uint64_t missing = std::exchange(failed, 0);
    why.clear();
    if (missing == 0) return std::nullopt;
    return fmt::format("round {}: {} are written again; {} could not be", event.round, many, missing);
  }
  const bool was_tried = number_in(event, "took_s").has_value();
  if (was_tried) why = event.why;
  if (failed++ > 0) return std::nullopt;
  if (!was_tried) return event.why;
  return fmt::format("round {}: no {}, training goes on: {}", event.round, one, event.why);
}

/// A lone peer is the majority of its own last record: only the first of its rounds is marked.
std::optional<std::string> Troubles::alone_line(const Event& commit) {
  const double members = number_in(commit, "members").value_or(0);
  if (commit.cause != Cause::minority) {
    if (members > members_then_) alone_from_.reset();
    return std::nullopt;
  }
  if (alone_from_) return std::nullopt;
  alone_from_ = commit.round;
  members_then_ = members;
  return fmt::format(
      "round {} was decided without a majority of the members: if the others trained on, this peer gives up "
      "its rounds from then on when it meets them",
      commit.round);
}

std::optional<std::string> Troubles::restore_line(const Event& restore) {
  if (restore.cause == Cause::anew)
    return fmt::format("goes on alone after round {}: {}", restore.round, restore.why);
  if (restore.cause != Cause::none || restore.digest.empty() || !alone_from_) return std::nullopt;
  return fmt::format(
      "gave up its rounds from {} on, which it had decided without a majority, for the state of the others "
      "after round {}",
      *std::exchange(alone_from_, std::nullopt), restore.round);
}

/// A peer with a valid token that trains something else: a mistake of its user, who may look at this peer
/// alone.
std::optional<std::string> Troubles::refuse_line(const Event& refusal) {
  if (refusal.cause == Cause::own) return fmt::format("round {}: {}", refusal.round, refusal.why);
  const bool differs = refusal.cause == Cause::run || refusal.cause == Cause::parameters;
  if (!refusal.peer || !differs) return std::nullopt;
  refused_ = fmt::format("peer {} was refused: {}", peer_name(*refusal.peer), refusal.why);
  if (refusals_told_.size() >= kMostRefusals || !refusals_told_.insert(refused_).second) return std::nullopt;
  return refused_ + "; its own message says what it has instead";
}

std::optional<std::string> Troubles::line_for(const Event& event) {
  switch (event.phase) {
    case Phase::checkpoint:
      if (event.cause == Cause::skipped) return "skipped a checkpoint: " + event.why;
      return checkpoints_.line_for(event, "checkpoint", "checkpoints");
    case Phase::copy:
      return copies_.line_for(event, "copy in checkpoint.to", "copies in checkpoint.to");
    case Phase::commit:
      refused_.clear();  // nobody waited for that peer; it dials again as long as it is there
      return alone_line(event);
    case Phase::restore:
      return restore_line(event);
    case Phase::budget:
      return event.why;
    case Phase::refuse:
      return refuse_line(event);
    default:
      return std::nullopt;
  }
}

}  // namespace tw::monitor
