// SPDX-License-Identifier: Apache-2.0
#include "monitor/board/board.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "base/peer_name.h"

namespace tw::monitor {

std::string_view name_of(Interruption::Kind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"joined", "notice", "handed_over",
                                                      "left",   "lost",   "resumed"};
  return kNames.at(static_cast<std::size_t>(kind));
}

void Board::is_dead_since(double since_s) {
  dead_since_s = since_s;
  money.left_s.reset();
  money.forecast.reset();
}

std::string_view name_of(Delay::Cause cause) {
  constexpr std::array<std::string_view, 5> kNames = {"loader", "core", "disk", "compute", "link"};
  return kNames.at(static_cast<std::size_t>(cause));
}

std::string what_of(const Delay& delay) {
  const std::string peer = "peer " + peer_name(delay.peer);
  switch (delay.cause) {
    case Delay::Cause::loader:
      return "the data loader of " + peer;
    case Delay::Cause::core:
      return "the busy processor of " + peer;
    case Delay::Cause::disk:
      return "the disk of " + peer;
    case Delay::Cause::compute:
      return "the slow computing of " + peer;
    case Delay::Cause::link:
      break;
  }
  if (!delay.to) return "the link of " + peer;
  return fmt::format("the link between {} and peer {}", peer, peer_name(*delay.to));
}

std::string remedy_of(const Delay& delay) {
  switch (delay.cause) {
    case Delay::Cause::loader:
      return "give its loader more workers, or keep its data nearer";
    case Delay::Cause::core:
      return "end what else runs there, or give it more cores";
    case Delay::Cause::disk:
      return "write its event log (--out) to another disk";
    case Delay::Cause::compute:
      return "look for throttling or a shared GPU there, or replace the machine";
    case Delay::Cause::link:
      break;
  }
  return "replace it by a machine elsewhere, or use a smaller training.codec";
}

std::vector<BoardEvaluation> newest_evaluations(const Board& board) {
  std::map<std::string, BoardEvaluation> by_name;
  for (const BoardEvaluation& one : board.evaluations) {
    const auto known = by_name.find(one.name);
    if (known == by_name.end() || known->second.round < one.round) by_name[one.name] = one;
  }
  std::vector<BoardEvaluation> newest;
  for (const auto& [name, one] : by_name) newest.push_back(one);
  return newest;
}

}  // namespace tw::monitor
