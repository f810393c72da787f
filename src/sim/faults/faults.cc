// SPDX-License-Identifier: Apache-2.0
#include "sim/faults/faults.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "sim/virtual/events.h"

namespace tw::sim {
namespace {

// Where a round changes hands, and so where few instructions decide: rare under uniform times.
constexpr std::array kCues{world::Phase::accumulate, world::Phase::call,   world::Phase::scatter,
                           world::Phase::gather,     world::Phase::gather, world::Phase::commit,
                           world::Phase::commit,     world::Phase::apply};

template <class T, std::size_t kSize>
T pick(Prng& random, const std::array<T, kSize>& from) {
  return from[random.below(kSize)];
}

Fault draw(Prng& random, const FaultSpec& spec, const FaultTimes& times, double span_s) {
  Fault fault;
  fault.kind = spec.kind;
  if (times.rounds > times.calm_rounds && random.chance(times.cue_chance)) {
    fault.cue = Cue{pick(random, kCues), 1 + random.below(times.rounds - times.calm_rounds)};
    // Half of them at once: before anything that was sent has arrived.
    if (random.chance(0.5)) fault.after = from_seconds(Between{1e-4, 0.5}.draw(random));
  } else {
    fault.after = from_seconds(span_s * random.uniform());
  }
  fault.aim = pick(random, std::array{Aim::any, Aim::leader, Aim::author});
  fault.lasts = from_seconds(spec.lasts_s.draw(random));
  fault.death = pick(random, std::array{Death::clean, Death::abrupt, Death::silent});
  fault.choice = random.next();
  return fault;
}

}  // namespace

const std::vector<FaultName>& fault_names() {
  static const std::vector<FaultName> kNames = {
      {FaultKind::reset, "reset"},
      {FaultKind::black_hole, "black_hole"},
      {FaultKind::slow, "slow"},
      {FaultKind::latency, "latency"},
      {FaultKind::jitter, "jitter"},
      {FaultKind::one_way, "one_way"},
      {FaultKind::partition, "partition"},
      {FaultKind::clog, "clog"},
      {FaultKind::kill, "kill"},
      {FaultKind::stop, "stop"},
      {FaultKind::away, "away"},
      {FaultKind::preempt_0s, "preempt_0s"},
      {FaultKind::preempt_10s, "preempt_10s"},
      {FaultKind::preempt_30s, "preempt_30s"},
      {FaultKind::preempt_120s, "preempt_120s"},
      {FaultKind::at_risk, "at_risk"},
      {FaultKind::zone_loss, "zone_loss"},
      {FaultKind::return_stale, "return_stale"},
      {FaultKind::relaunch, "relaunch"},
      {FaultKind::rolling_relaunch, "rolling_relaunch"},
      {FaultKind::loss_of_all, "loss_of_all"},
      {FaultKind::twin, "twin"},
      {FaultKind::join, "join"},
      {FaultKind::leave, "leave"},
      {FaultKind::disk_full, "disk_full"},
      {FaultKind::disk_error, "disk_error"},
      {FaultKind::torn_write, "torn_write"},
      {FaultKind::lost_fsync, "lost_fsync"},
      {FaultKind::bit_flip, "bit_flip"},
      {FaultKind::rename_lost, "rename_lost"},
      {FaultKind::store_away, "store_away"},
      {FaultKind::store_lacks, "store_lacks"},
      {FaultKind::memory_flip, "memory_flip"},
      {FaultKind::clock_jump, "clock_jump"},
      {FaultKind::send_nan, "send_nan"},
      {FaultKind::send_infinite, "send_infinite"},
      {FaultKind::send_huge, "send_huge"},
      {FaultKind::send_negated, "send_negated"},
      {FaultKind::claim_more, "claim_more"},
      {FaultKind::replay, "replay"},
      {FaultKind::duplicate, "duplicate"},
      {FaultKind::wrong_length, "wrong_length"},
      {FaultKind::wrong_round, "wrong_round"},
      {FaultKind::malformed, "malformed"},
      {FaultKind::truncated, "truncated"},
      {FaultKind::flood, "flood"},
      {FaultKind::chunk_flip, "chunk_flip"},
      {FaultKind::forge_mean, "forge_mean"},
  };
  return kNames;
}

const char* name_of(FaultKind kind) {
  for (const FaultName& row : fault_names()) {
    if (row.kind == kind) return row.name;
  }
  TW_CHECK(false);
  return "";
}

std::optional<FaultKind> fault_named(std::string_view name) {
  for (const FaultName& row : fault_names()) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

bool is_of_a_disk(FaultKind kind) { return kind >= FaultKind::disk_full && kind <= FaultKind::rename_lost; }

bool is_of_a_store(FaultKind kind) { return kind == FaultKind::store_away || kind == FaultKind::store_lacks; }

std::string to_string(const Fault& fault) {
  constexpr std::array kAims{"any peer", "the leader", "the author"};
  constexpr std::array kDeaths{"clean", "abrupt", "silent"};
  const std::string when =
      fault.cue ? fmt::format("{:.4f} s after the first {} of round {}", to_seconds(fault.after),
                              name_of(fault.cue->phase), fault.cue->round)
                : fmt::format("at {:.3f} s", to_seconds(fault.after));
  return fmt::format("{} of {}, {}, for {:.2f} s, {}", name_of(fault.kind),
                     kAims[static_cast<std::size_t>(fault.aim)],
                     kDeaths[static_cast<std::size_t>(fault.death)], to_seconds(fault.lasts), when);
}

std::vector<Fault> draw_faults(Prng& random, const std::vector<FaultSpec>& menu, const FaultTimes& times) {
  const double span_s = times.span_s.draw(random);
  std::vector<Fault> faults;
  for (const FaultSpec& spec : menu) {
    if (!random.chance(spec.chance)) continue;
    const auto spread = static_cast<std::uint64_t>(std::max(0, spec.most - spec.least)) + 1;
    const std::uint64_t count = static_cast<std::uint64_t>(spec.least) + random.below(spread);
    for (std::uint64_t i = 0; i < count; ++i) faults.push_back(draw(random, spec, times, span_s));
  }
  return faults;
}

}  // namespace tw::sim
