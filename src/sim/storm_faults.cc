// SPDX-License-Identifier: Apache-2.0
#include "sim/storm_faults.h"

#include <array>
#include <cmath>

#include "base/prng.h"

namespace tw::v1 {
namespace {

// Kills and joins are most of the menu: those change who takes part.
constexpr std::array kMenu{FaultKind::kill, FaultKind::kill, FaultKind::kill,    FaultKind::kill,
                           FaultKind::join, FaultKind::join, FaultKind::join,    FaultKind::leave,
                           FaultKind::stop, FaultKind::stop, FaultKind::isolate, FaultKind::reset,
                           FaultKind::slow};

// Where a round changes hands, and so where few instructions decide: rare under uniform times.
constexpr std::array kCues{Phase::accumulate, Phase::call,   Phase::scatter, Phase::gather,
                           Phase::gather,     Phase::commit, Phase::commit,  Phase::apply};

template <class T, std::size_t kSize>
T pick(Prng& random, const std::array<T, kSize>& from) {
  return from[random.below(kSize)];
}

// As many short ones as long ones, by order of magnitude.
Duration log_uniform(Prng& random, Duration least, Duration most) {
  return from_seconds(to_seconds(least) * std::pow(to_seconds(most) / to_seconds(least), random.uniform()));
}

Fault draw(Prng& random, const FaultOptions& options) {
  Fault fault;
  fault.kind = pick(random, kMenu);
  if (random.chance(0.6) && options.rounds > kCalmRounds) {
    fault.cue = Cue{pick(random, kCues), 1 + random.below(options.rounds - kCalmRounds)};
    // Half of them at once: before anything that was sent has arrived.
    if (random.chance(0.5)) {
      fault.after = log_uniform(random, std::chrono::microseconds(100), std::chrono::milliseconds(500));
    }
  } else {
    fault.after = from_seconds(to_seconds(options.span) * random.uniform());
  }
  fault.aim = pick(random, std::array{Aim::any, Aim::leader, Aim::author});
  const Duration longest = fault.kind == FaultKind::stop ? options.longest_stop : options.longest_isolation;
  fault.lasts = log_uniform(random, std::chrono::milliseconds(100), longest);
  fault.death = pick(random, std::array{Death::clean, Death::abrupt, Death::silent});
  fault.choice = random.next();
  return fault;
}

}  // namespace

std::vector<Fault> draw_faults(std::uint64_t seed, const FaultOptions& options) {
  Prng random(seed);
  const auto spread = static_cast<std::uint64_t>(options.faults_most - options.faults_least + 1);
  std::vector<Fault> faults(static_cast<std::size_t>(options.faults_least) + random.below(spread));
  for (Fault& fault : faults) fault = draw(random, options);
  return faults;
}

}  // namespace tw::v1
