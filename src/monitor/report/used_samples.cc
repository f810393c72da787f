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

namespace tw::monitor {
namespace {

/// Nothing: they cannot be read.
std::optional<UsedSamples::InRound> samples_in(Round round, const event::Commit& commit) {
  UsedSamples::InRound samples{.round = round, .of = {}};
  for (const auto& [peer, text] : commit.samples_of) {
    const auto ranges = ranges_in(text);
    if (!ranges) return std::nullopt;
    samples.of[peer] = *ranges;
  }
  return samples;
}

std::optional<UsedSamples::Order> order_in(const event::Log& log) {
  const std::uint64_t dataset = log.dataset.value_or(0), block = log.block.value_or(0);
  const auto seed = parse_number<std::uint64_t>(log.seed);
  if (!seed || dataset < 1 || block < 1) return std::nullopt;
  return UsedSamples::Order{*seed, dataset, block, log.begun.value_or(0)};
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

Result<UsedSamples> used_samples(const LogSource& logs, const HeldHistory& history) {
  UsedSamples used;
  std::map<std::string, std::optional<UsedSamples::InRound>> told;  // by the records of the history
  for (const HeldHistory::Held& held : history.records()) told.try_emplace(held.record);
  std::set<std::string> read;
  TW_TRY(logs.each(phases({world::Phase::commit, world::Phase::log, world::Phase::skip}),
                   [&](const LogEntry& entry, std::size_t) {
                     const world::Event& event = entry.event;
                     if (const auto* log = event.as<event::Log>(); log && !used.order)
                       used.order = order_in(*log);
                     if (const auto* skip = event.as<event::Skip>(); skip && skip->sample)
                       used.skipped.insert(*skip->sample);
                     const auto* commit = event.as<event::Commit>();
                     if (commit == nullptr || !told.contains(commit->digest)) return;
                     if (read.insert(commit->digest).second)
                       told[commit->digest] = samples_in(event.round, *commit);
                   }));
  for (const HeldHistory::Held& held : history.records())
    if (auto& samples = told.at(held.record)) TW_TRY(add_round(std::move(*samples), used));
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
