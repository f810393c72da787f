// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/used_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/peer_name.h"
#include "base/range_text.h"
#include "base/result.h"
#include "base/text/number.h"
#include "world/event_table.h"

namespace tw::monitor {
namespace {

/// Nothing: its peer told no samples.
std::optional<UsedSamples::InRound> samples_in(const world::Event& event) {
  UsedSamples::InRound samples{.round = event.round, .of = {}};
  for (const auto& [name, text] : event.texts) {
    if (!name.starts_with(world::kSamplesOf)) continue;
    const auto peer = parse_number<std::uint64_t>(std::string_view(name).substr(world::kSamplesOf.size()));
    const auto ranges = ranges_in(text);
    if (!peer || !ranges) return std::nullopt;
    samples.of[PeerId{*peer}] = *ranges;
  }
  return samples;
}

std::optional<UsedSamples::Order> order_in(const world::Event& event) {
  const auto seed = std::ranges::find(event.texts, "seed", &std::pair<std::string, std::string>::first);
  const auto dataset = number_in(event, "dataset"), block = number_in(event, "block");
  if (seed == event.texts.end() || !dataset || !block || *dataset < 1 || *block < 1) return std::nullopt;
  const auto number = parse_number<std::uint64_t>(seed->second);
  if (!number) return std::nullopt;
  return UsedSamples::Order{*number, static_cast<std::uint64_t>(*dataset),
                            static_cast<std::uint64_t>(*block)};
}

Status add_round(UsedSamples::InRound samples, UsedSamples& used) {
  for (const auto& [peer, of_peer] : samples.of) {
    if (used.all.intersects(of_peer))
      return Error{fmt::format("round {}: peer {} used samples {}, of which some were used before",
                               samples.round, peer_name(peer), to_string(of_peer))};
    used.all.add(of_peer);
  }
  used.rounds.push_back(std::move(samples));
  return Unit{};
}

}  // namespace

Result<UsedSamples> used_samples(const std::vector<LogEntry>& entries) {
  UsedSamples used;
  for (const LogEntry& entry : entries) {
    const world::Event& event = entry.event;
    if (event.phase == world::Phase::log && !used.order) used.order = order_in(event);
    const auto skipped = event.phase == world::Phase::skip ? number_in(event, "sample") : std::nullopt;
    if (skipped) used.skipped.insert(static_cast<std::uint64_t>(*skipped));
  }
  const HeldHistory history(entries);
  for (const world::Event* commit : history.commits()) {
    auto samples = samples_in(*commit);
    if (!samples) continue;
    TW_TRY(add_round(std::move(*samples), used));
  }
  used.dropped = history.dropped_rounds();
  if (used.rounds.empty()) return Error{"no log tells the samples of a round"};
  return used;
}

std::string text_of(const UsedSamples& used) {
  std::string text = fmt::format("{} rounds, {} samples, each once", used.rounds.size(), used.all.count());
  for (const DroppedRounds& dropped : used.dropped) text += "; " + to_string(dropped);
  if (used.all.empty()) return text;
  const std::uint64_t first = used.all.ranges().front().first;
  RangeSet left_out(Range{first, used.all.ranges().back().end() - first});
  left_out.remove(used.all);
  if (first > 0) text += fmt::format("; the logs begin with sample {}", first);
  if (!left_out.empty()) text += fmt::format("; not used so far: {}", to_string(left_out));
  return text;
}

}  // namespace tw::monitor
