// SPDX-License-Identifier: Apache-2.0
#include "monitor/terminal/progress_text.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/peer_name.h"
#include "base/text/duration.h"
#include "monitor/logs/event_log_json.h"

namespace tw::monitor {

using world::Event;
using world::Phase;

namespace {

constexpr Duration kBetweenLines = std::chrono::seconds(2);

std::string about(const Event& event) { return event.peer ? "peer " + peer_name(*event.peer) : "this peer"; }

/// "peer 12" does not name "peer 1".
bool names(std::string_view text, std::string_view peer) {
  for (auto at = text.find(peer); at != std::string_view::npos; at = text.find(peer, at + 1)) {
    const std::string_view rest = text.substr(at + peer.size());
    if (rest.empty() || rest.front() < '0' || rest.front() > '9') return true;
  }
  return false;
}

/// The peer that a wait is about, where its text does not name it.
std::string awaited(const Event& wait) {
  const bool named = wait.why.starts_with("wait") || names(wait.why, about(wait));
  return wait.peer && !named ? "waiting for " + about(wait) + ": " : "";
}

std::string because(const Event& event) { return event.why.empty() ? "" : ": " + event.why; }

std::string measured(const Event& event, const char* number, const char* format) {
  const auto value = number_in(event, number);
  return value ? fmt::format(fmt::runtime(format), *value) : "";
}

/// Refusals of one cause are told together (monitor/logs/refusal_count.h).
std::string repeated(const Event& event) {
  const double count = number_in(event, "count").value_or(1);
  return count > 1 ? fmt::format(" ({:.0f} of this kind)", count) : "";
}

/// Cause::anew is told as a warning.
std::optional<std::string> restore_line(const Event& event) {
  if (event.cause == world::Cause::anew) return std::nullopt;
  if (event.digest.empty()) return "takes the state of others" + because(event);
  if (event.cause == world::Cause::checkpoint) return fmt::format("resumed from round {}", event.round);
  return fmt::format("took the state of round {} from other peers{}", event.round,
                     measured(event, "took_s", " in {:.2f} s"));
}

/// Time left of transfers and checkpoints, whose counts are bytes; peers are fewer.
std::string time_left(const Event& wait) {
  constexpr double kFewestBytes = 1e6;
  const double done = number_in(wait, "done").value_or(0), total = number_in(wait, "total").value_or(0);
  const double lasted_s = number_in(wait, "seconds").value_or(0);
  if (total < kFewestBytes || !(done > 0 && done < total)) return "";
  return fmt::format(", about {} to go", duration_text(lasted_s * (total - done) / done));
}

std::string notice_line(const Event& event) {
  return fmt::format("notice from {}: {}{}{}", event.source, name_of(event.cause),
                     measured(event, "deadline_s", " in {:.0f} s"),
                     event.why.empty() ? "" : " (" + event.why + ")");
}

std::string handover_line(const Event& event) {
  return fmt::format("round {}  leaves its work to {}{}{}{}", event.round, about(event),
                     measured(event, "samples", ": {:.0f} samples"),
                     measured(event, "took_s", " in {:.2f} s"),
                     measured(event, "round_left_s", "; the round has {:.1f} s to go"));
}

/// A wait for samples that is over, and that nobody felt.
bool is_small_wait(const Event& wait) {
  constexpr double kFeltS = 1;
  return wait.cause == world::Cause::sample && number_in(wait, "seconds").value_or(0) < kFeltS;
}

}  // namespace

std::optional<std::string> ProgressText::round_line(const Event& commit) {
  const auto total = static_cast<std::uint64_t>(number_in(commit, "samples_total").value_or(0));
  if (shown_at_ != Instant{} && commit.at - shown_at_ < kBetweenLines) return std::nullopt;
  std::string line = fmt::format("round {}", commit.round);
  if (rounds_ > 0) line += fmt::format("/{}", rounds_);
  line += measured(commit, "members", "  {:.0f} peers");
  if (shown_at_ != Instant{} && total >= shown_samples_)
    line += fmt::format("  {:.0f} samples/s",
                        static_cast<double>(total - shown_samples_) / to_seconds(commit.at - shown_at_));
  line += measured(commit, "batch", "  batch {:.0f}");
  line += measured(commit, "loss", "  loss {:.3f}");
  line += measured(commit, "calc_s", "  calc {:.2f} s");
  line += measured(commit, "comm_s", "  comm {:.2f} s");
  line += measured(commit, "hidden_s", ", {:.2f} s hidden");
  shown_at_ = commit.at;
  shown_samples_ = total;
  return line;
}

std::optional<std::string> ProgressText::loss_line(const Event& lost) {
  const std::pair now(lost.peer.value_or(PeerId{}), lost.round);
  if (lost_ == now) return std::nullopt;
  lost_ = now;
  return fmt::format("round {}  lost {}{}{}", lost.round, about(lost),
                     measured(lost, "silent_s", ", silent for {:.2f} s"), because(lost));
}

std::optional<std::string> ProgressText::line_for(const Event& event) {
  const std::string round = fmt::format("round {}  ", event.round);
  switch (event.phase) {
    case Phase::accumulate:
      begun_ = true;
      return std::nullopt;
    case Phase::commit:
      return round_line(event);
    case Phase::wait:
      if (is_small_wait(event)) return std::nullopt;
      return awaited(event) + event.why + measured(event, "seconds", " ({:.0f} s)") + time_left(event);
    case Phase::join:
      if (!begun_ || !event.peer) return std::nullopt;
      return round + about(event) + " joined";
    case Phase::leave:
      return round + about(event) + " leaves";
    case Phase::lost:
      return loss_line(event);
    case Phase::restore:
      return restore_line(event);
    case Phase::warn:
      return event.why;
    case Phase::refuse:
      return (event.peer ? "turned away " + about(event) : "no link") + because(event) + repeated(event);
    case Phase::reissue:
      return event.cause == world::Cause::sample ? std::optional(round + event.why) : std::nullopt;
    case Phase::skip:
      return round + "goes on without a sample" + because(event);
    case Phase::evaluate:
      return round + "evaluated: " + event.text("name") + measured(event, "value", " {:.6g}");
    case Phase::notice:
      return notice_line(event);
    case Phase::handover:
      return handover_line(event);
    default:
      return std::nullopt;
  }
}

}  // namespace tw::monitor
