// SPDX-License-Identifier: Apache-2.0
#include "launch/local/script.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/median.h"
#include "base/text/fields.h"
#include "base/text/number.h"
#include "monitor/report/report.h"

namespace tw::launch {

Result<Kill> parse_kill(const std::string& text) {
  const std::size_t at = text.find('@');
  const std::string who = text.substr(0, at);
  const auto peer = parse_number<std::uint64_t>(who);
  const Round round =
      at == std::string::npos ? 0 : parse_number<std::uint64_t>(text.substr(at + 1)).value_or(0);
  const std::string expected = "expected PEER@ROUND such as 2@10, or leader@ROUND";
  if (round == 0) {
    const std::string like = peer || who == "leader" ? fmt::format(", for example --kill {}@1", who) : "";
    return Error{fmt::format("--kill {}: {}; rounds count from 1{}", text, expected, like)};
  }
  if (who == "leader") return Kill{.victim = {}, .round = round};
  if (peer && *peer > 0) return Kill{.victim = PeerId{*peer}, .round = round};
  const std::string like = did_you_mean(who, std::vector<std::string>{"leader"});
  return Error{fmt::format("--kill {}: {}; peers count from 1{}", text, expected, like)};
}

std::string to_string(const Kill& kill) {
  return fmt::format("{}@{}", kill.victim ? to_string(*kill.victim) : "leader", kill.round);
}

void Script::note(const monitor::LogEntry& entry) {
  const world::Event& event = entry.event;
  if (event.phase == world::Phase::accumulate) {
    begun_[entry.writer] = {.round = event.round, .at = event.at};
    round_ = std::max(round_, event.round);
  } else if (event.phase == world::Phase::lead && event.round >= leader_since_) {
    leader_ = entry.writer;
    leader_since_ = event.round;
  } else if (event.phase == world::Phase::call) {
    if (const auto calc_s = monitor::number_in(event, "calc_s")) calc_s_.push_back(*calc_s);
  }
}

std::optional<PeerId> Script::victim_of(const Kill& kill) const {
  if (kill.victim) return kill.victim;
  return leader_;
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
    const auto victim = victim_of(kill);
    const auto begun = victim ? begun_.find(*victim) : begun_.end();
    if (begun == begun_.end() || begun->second.round < kill.round) return false;
    if (begun->second.round == kill.round && now < begun->second.at + half_accumulation()) return false;
    due.kills.emplace_back(*victim, begun->second.round);
    return true;
  });
  return due;
}

std::vector<std::string> Script::pending() const {
  std::vector<std::string> options;
  for (const Kill& kill : kills_) options.push_back("--kill " + to_string(kill));
  for (const Round round : joins_) options.push_back(fmt::format("--join {}", round));
  return options;
}

}  // namespace tw::launch
