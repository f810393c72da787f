// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/what_if.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "market/averaging_overheads.h"

namespace tw::monitor {
namespace {

constexpr double kBytesPerParam = 2;
constexpr std::size_t kLastRounds = 50;
/// Fewer rounds, such as those right after a loss, would judge the law by their noise.
constexpr std::size_t kLeastJudged = 5;
constexpr std::uint64_t kMostPeers = 1024;
constexpr double kPeers[] = {0.125, 0.25, 0.5, 1, 1.5, 2, 4, 8};
constexpr double kBandwidths[] = {0.1, 0.2, 0.5, 1, 2, 5, 10};
constexpr double kBatches[] = {1.0 / 16, 0.25, 0.5, 1, 2, 4, 16};

bool is_measured(const BoardRound& round) {
  return round.committed_s && round.calc_s.value_or(0) > 0 && round.samples > 0 &&
         !round.contributors.empty();
}

/// The last rounds with as many peers as the newest one: what the run is now.
std::vector<BoardRound> rounds_now(const Board& board) {
  std::vector<BoardRound> rounds;
  for (auto at = board.rounds.rbegin(); at != board.rounds.rend() && rounds.size() < kLastRounds; ++at) {
    if (!is_measured(*at)) continue;
    if (rounds.empty() || rounds.front().contributors.size() == at->contributors.size())
      rounds.push_back(*at);
  }
  std::ranges::reverse(rounds);
  return rounds;
}

struct Pace {
  double calc_s = 0, comm_s = 0;
  bool overlaps = false;  ///< the next round is computed meanwhile

  double seconds() const { return overlaps ? std::max(calc_s, comm_s) : calc_s + comm_s; }
};

/// What a run measured of itself.
struct Measured {
  double peers = 0, batch = 0;
  double samples_per_s = 0;  ///< of all peers while they compute
  double mb = 0;             ///< of the vector
  double comm_s = 0;
  bool overlaps = false;
  std::optional<double> wire_s;  ///< by its bandwidth; nothing: no bound is known

  Pace with(double other_peers, double bandwidth, double other_batch) const {
    Pace round{.calc_s = other_batch * peers / (samples_per_s * other_peers), .overlaps = overlaps};
    if (other_peers < 2) return round;
    const auto sent = [](double n) { return (n - 1) / n; };
    // Where no bound is known, the measured averaging stands for the wire.
    const double now_s = wire_s ? *wire_s / market::kShareOfBound : comm_s;
    const double wire = peers > 1 ? now_s * sent(other_peers) / sent(peers) / bandwidth : 0;
    const double processor_s = market::kProcessorSPerGb * 2 * sent(other_peers) * mb / 1e3;
    const double update_s = market::kUpdateSPerMParams * mb / kBytesPerParam;
    round.comm_s = std::max(wire, processor_s) + market::kRoundS + update_s;
    return round;
  }
};

std::optional<Measured> measured(const Board& board, std::span<const BoardRound> last) {
  if (last.size() < 2) return std::nullopt;
  const auto count = static_cast<double>(last.size());
  Measured run{.peers = static_cast<double>(last.front().contributors.size()),
               .overlaps = board.speed.hidden.has_value()};
  double samples = 0, calc_s = 0, wire_s = 0, wires = 0;
  for (const BoardRound& round : last) {
    samples += static_cast<double>(round.samples);
    calc_s += *round.calc_s;
    run.comm_s += round.comm_s.value_or(0) / count;
    const double wire = round.bound_share.value_or(0) * round.comm_s.value_or(0);
    wire_s += wire;
    wires += wire > 0 ? 1 : 0;
  }
  run.batch = samples / count;
  run.samples_per_s = samples / calc_s;
  if (wires > 0) run.wire_s = wire_s / wires;
  double bytes = 0;
  for (const BoardLink& link : board.links)
    if (link.store.empty()) bytes += static_cast<double>(link.bytes);
  if (run.peers > 1 && board.round > 0)
    run.mb = bytes / static_cast<double>(board.round) / (2 * (run.peers - 1)) / 1e6;
  return run;
}

std::optional<WhatIf::Judged> judged(const Board& board, std::span<const BoardRound> last) {
  const std::size_t half = (last.size() + 1) / 2;
  const auto run = measured(board, last.first(half));
  if (!run) return std::nullopt;
  std::map<Round, double> ends;
  for (const BoardRound& round : board.rounds)
    if (round.committed_s) ends[round.round] = *round.committed_s;
  WhatIf::Judged judged;
  double samples = 0, took_s = 0;
  for (const BoardRound& round : last.subspan(half)) {
    const auto before = ends.find(round.round - 1);
    if (before == ends.end()) continue;
    samples += static_cast<double>(round.samples);
    took_s += *round.committed_s - before->second;
    ++judged.rounds;
  }
  if (judged.rounds < kLeastJudged || took_s <= 0) return std::nullopt;
  judged.measured = samples / took_s;
  judged.predicted = run->batch / run->with(run->peers, 1, run->batch).seconds();
  return judged;
}

/// Times these, whole and at least 1, each once.
std::vector<std::uint64_t> steps_of(double value, std::span<const double> factors, std::uint64_t most) {
  std::set<std::uint64_t> steps;
  for (const double factor : factors) {
    const auto step = static_cast<std::uint64_t>(std::max(1.0, std::round(value * factor)));
    if (step <= most || factor <= 1) steps.insert(step);
  }
  return {steps.begin(), steps.end()};
}

}  // namespace

std::optional<WhatIf> what_if(const Board& board) {
  const std::vector<BoardRound> last = rounds_now(board);
  const auto run = measured(board, last);
  if (!run) return std::nullopt;
  WhatIf answers{.peers = steps_of(run->peers, kPeers, kMostPeers),
                 .bandwidth = {std::begin(kBandwidths), std::end(kBandwidths)},
                 .tbs = steps_of(run->batch, kBatches, UINT64_MAX)};
  answers.as_it_is = {.peers = static_cast<std::uint64_t>(run->peers),
                      .tbs = static_cast<std::uint64_t>(std::max(1.0, std::round(run->batch)))};
  answers.judged = judged(board, last);
  for (const std::uint64_t peers : answers.peers) {
    auto& of_peers = answers.rounds.emplace_back();
    for (const double bandwidth : answers.bandwidth) {
      auto& of_bandwidth = of_peers.emplace_back();
      for (const std::uint64_t tbs : answers.tbs) {
        const auto batch = static_cast<double>(tbs);
        const Pace round = run->with(static_cast<double>(peers), bandwidth, batch);
        of_bandwidth.push_back(
            {batch / round.seconds(), round.seconds(), round.comm_s, round.calc_s / round.comm_s});
      }
    }
  }
  return answers;
}

}  // namespace tw::monitor
