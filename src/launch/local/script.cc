// SPDX-License-Identifier: Apache-2.0
#include "launch/local/script.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/median.h"
#include "base/result.h"
#include "base/text/fields.h"
#include "base/text/number.h"

namespace tw::launch {

namespace {

/// PEER@ROUND or leader@ROUND of an option.
Result<Kill> parse_moment(const std::string& option, const std::string& text, const std::string& moment) {
  const std::size_t at = moment.find('@');
  const std::string who = moment.substr(0, at);
  const auto peer = parse_number<std::uint64_t>(who);
  const Round round =
      at == std::string::npos ? 0 : parse_number<std::uint64_t>(moment.substr(at + 1)).value_or(0);
  const std::string expected = "expected PEER@ROUND such as 2@10, or leader@ROUND";
  if (round == 0) {
    const std::string like = peer || who == "leader" ? fmt::format(", for example {} {}@1", option, who) : "";
    return Error{fmt::format("{} {}: {}; rounds count from 1{}", option, text, expected, like)};
  }
  if (who == "leader") return Kill{.victim = {}, .round = round};
  if (peer && *peer > 0) return Kill{.victim = PeerId{*peer}, .round = round};
  const std::string like = did_you_mean(who, std::vector<std::string>{"leader"});
  return Error{fmt::format("{} {}: {}; peers count from 1{}", option, text, expected, like)};
}

std::string moment_text(const std::optional<PeerId>& victim, Round round) {
  return fmt::format("{}@{}", victim ? to_string(*victim) : "leader", round);
}

}  // namespace

Result<Kill> parse_kill(const std::string& text) { return parse_moment("--kill", text, text); }

std::string to_string(const Kill& kill) { return moment_text(kill.victim, kill.round); }

Result<Stop> parse_stop(const std::string& text) {
  constexpr double kMost_s = 86400;
  const std::size_t colon = text.find(':');
  TW_TRY(const auto moment, parse_moment("--stop", text, text.substr(0, colon)));
  Stop stop{.victim = moment.victim, .round = moment.round};
  if (colon == std::string::npos) return stop;
  const auto seconds = parse_number<double>(text.substr(colon + 1));
  if (!seconds || !(*seconds > 0 && *seconds <= kMost_s))
    return Error{fmt::format("--stop {}: expected PEER@ROUND:SECONDS such as {}:{:g}; up to {} seconds", text,
                             to_string(moment), to_seconds(Stop::kUsual), kMost_s)};
  stop.lasts = from_seconds(*seconds);
  return stop;
}

std::string to_string(const Stop& stop) {
  const std::string moment = moment_text(stop.victim, stop.round);
  return stop.lasts == Stop::kUsual ? moment : fmt::format("{}:{:g}", moment, to_seconds(stop.lasts));
}

void Script::note(const monitor::LogEntry& entry) {
  const world::Event& event = entry.event;
  if (event.as<event::Accumulate>()) {
    begun_[entry.writer] = {.round = event.round, .at = event.at};
    round_ = std::max(round_, event.round);
  } else if (event.as<event::Lead>() && event.round >= leader_since_) {
    leader_ = entry.writer;
    leader_since_ = event.round;
  } else if (const auto* call = event.as<event::Call>(); call && call->calc_s) {
    calc_s_.push_back(*call->calc_s);
  }
}

std::optional<std::pair<PeerId, Round>> Script::due(const std::optional<PeerId>& named, Round round,
                                                    Instant now) const {
  const std::optional<PeerId> victim = named ? named : leader_;
  const auto begun = victim ? begun_.find(*victim) : begun_.end();
  if (begun == begun_.end() || begun->second.round < round) return std::nullopt;
  if (begun->second.round == round && now < begun->second.at + half_accumulation()) return std::nullopt;
  return std::pair(*victim, begun->second.round);
}

Duration Script::half_accumulation() const { return from_seconds(median(calc_s_) / 2); }

Script::Due Script::step(Instant now) {
  Due due;
  std::erase_if(joins_, [&](Round round) {
    if (round > round_) return false;
    due.joins.push_back(round);
    return true;
  });
  std::erase_if(kills_, [&](const Kill& kill) {
    const auto found = this->due(kill.victim, kill.round, now);
    if (found) due.kills.push_back(*found);
    return found.has_value();
  });
  std::erase_if(stops_, [&](const Stop& stop) {
    const auto found = this->due(stop.victim, stop.round, now);
    if (found) due.stops.push_back({.victim = found->first, .round = found->second, .lasts = stop.lasts});
    return found.has_value();
  });
  return due;
}

std::vector<std::string> Script::pending() const {
  std::vector<std::string> options;
  for (const Kill& kill : kills_) options.push_back("--kill " + to_string(kill));
  for (const Stop& stop : stops_) options.push_back("--stop " + to_string(stop));
  for (const Round round : joins_) options.push_back(fmt::format("--join {}", round));
  return options;
}

}  // namespace tw::launch
