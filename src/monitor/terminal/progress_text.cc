// SPDX-License-Identifier: Apache-2.0
#include "monitor/terminal/progress_text.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/peer_name.h"
#include "base/text/duration.h"
#include "base/text/printable.h"
#include "base/text/text.h"

namespace tw::monitor {

using world::Event;

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

std::string measured(const auto& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "";
}

/// Refusals of one cause are told together (monitor/logs/refusal_count.h).
std::string repeated(const event::Refuse& refusal) {
  const std::uint64_t count = refusal.count.value_or(1);
  return count > 1 ? fmt::format(" ({} of this kind)", count) : "";
}

/// Cause::anew is told as a warning.
std::optional<std::string> restore_line(const Event& event, const event::Restore& restored) {
  if (restored.cause == event::Cause::anew) return std::nullopt;
  if (restored.digest.empty()) return "takes the state of others" + because(event);
  if (restored.cause == event::Cause::checkpoint) return fmt::format("resumed from round {}", event.round);
  return fmt::format("took the state of round {} from other peers{}", event.round,
                     measured(restored.took_s, " in {:.2f} s"));
}

/// Time left of transfers and checkpoints, whose counts are bytes; peers are fewer.
std::string time_left(const event::Wait& wait) {
  constexpr std::uint64_t kFewestBytes = 1'000'000;
  const std::uint64_t done = wait.done.value_or(0), total = wait.total.value_or(0);
  if (total < kFewestBytes || done == 0 || done >= total) return "";
  const double share = static_cast<double>(total - done) / static_cast<double>(done);
  return fmt::format(", about {} to go", duration_text(wait.seconds.value_or(0) * share));
}

std::string notice_line(const Event& event, const event::Notice& notice) {
  return fmt::format("notice from {}: {}{}{}", notice.source, name_of(notice.cause),
                     measured(notice.deadline_s, " in {:.0f} s"),
                     event.why.empty() ? "" : " (" + event.why + ")");
}

std::string handover_line(const Event& event, const event::Handover& handover) {
  return fmt::format("round {}  leaves its work to {}{}{}{}", event.round, about(event),
                     measured(handover.samples, ": {} samples"), measured(handover.took_s, " in {:.2f} s"),
                     measured(handover.round_left_s, "; the round has {:.1f} s to go"));
}

std::string wait_line(const Event& event, const event::Wait& wait) {
  return awaited(event) + event.why + measured(wait.seconds, " ({:.0f} s)") + time_left(wait);
}

}  // namespace

std::optional<std::string> ProgressText::round_line(const Event& event, const event::Commit& commit) {
  const std::uint64_t total = commit.samples_total;
  if (shown_at_ != Instant{} && event.at - shown_at_ < kBetweenLines) return std::nullopt;
  std::string line = fmt::format("round {}", event.round);
  if (rounds_ > 0) line += fmt::format("/{}", rounds_);
  if (commit.members > 0) line += "  " + counted(commit.members, "peer");
  if (shown_at_ != Instant{} && total >= shown_samples_)
    line += fmt::format("  {:.0f} samples/s",
                        static_cast<double>(total - shown_samples_) / to_seconds(event.at - shown_at_));
  line += measured(commit.batch.batch, "  batch {}");
  line += measured(commit.loss, "  loss {:.3f}");
  line += measured(commit.calc_s, "  calc {:.2f} s");
  line += measured(commit.comm_s, "  comm {:.2f} s");
  line += measured(commit.hidden_s, ", {:.2f} s hidden");
  shown_at_ = event.at;
  shown_samples_ = total;
  return line;
}

std::optional<std::string> ProgressText::loss_line(const Event& event, const event::Lost& lost) {
  const std::pair now(event.peer.value_or(PeerId{}), event.round);
  if (lost_ == now) return std::nullopt;
  lost_ = now;
  const bool says_it = event.why.starts_with("silent for");
  return fmt::format("round {}  lost {}{}{}", event.round, about(event),
                     says_it ? "" : measured(lost.silent_s, ", silent for {:.2f} s"), because(event));
}

std::optional<std::string> ProgressText::line_for(const Event& event) {
  const std::optional<std::string> text = text_for(event);
  return text ? std::optional(printable_line(*text)) : std::nullopt;
}

std::optional<std::string> ProgressText::text_for(const Event& event) {
  const std::string round = fmt::format("round {}  ", event.round);
  if (event.as<event::Accumulate>()) begun_ = true;
  if (const auto* commit = event.as<event::Commit>()) return round_line(event, *commit);
  if (const auto* wait = event.as<event::Wait>()) return wait_line(event, *wait);
  if (event.as<event::Join>() && begun_ && event.peer) return round + about(event) + " joined";
  if (event.as<event::Leave>()) return round + about(event) + " leaves";
  if (const auto* lost = event.as<event::Lost>()) return loss_line(event, *lost);
  if (const auto* restored = event.as<event::Restore>()) return restore_line(event, *restored);
  if (event.as<event::Warn>()) return event.why;
  if (const auto* refusal = event.as<event::Refuse>())
    return (event.peer ? "turned away " + about(event) : "no link") + because(event) + repeated(*refusal);
  if (const auto* again = event.as<event::Reissue>(); again && again->cause == event::Cause::sample)
    return round + event.why;
  if (event.as<event::Skip>()) return round + "goes on without a sample" + because(event);
  if (const auto* told = event.as<event::Evaluate>())
    return round + "evaluated: " + told->name + measured(told->value, " {:.6g}");
  if (const auto* notice = event.as<event::Notice>()) return notice_line(event, *notice);
  if (const auto* handover = event.as<event::Handover>()) return handover_line(event, *handover);
  return std::nullopt;
}

}  // namespace tw::monitor
