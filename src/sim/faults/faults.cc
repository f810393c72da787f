// SPDX-License-Identifier: Apache-2.0
#include "sim/faults/faults.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/virtual/events.h"

namespace tw::sim {
namespace {

using namespace std::chrono_literals;

/// A class, so that the names of the kinds stand for nothing else in this file.
struct Rows {
  using enum FaultKind;
  using enum FaultPlace;

  // clang-format off
  static constexpr FaultRow kRows[] = {
    {reset, "reset", path, kOver, "the link of two peers closes at both ends; what is under way is lost"},
    {black_hole, "black_hole", path, kLasts, "half-open: what is sent vanishes, and neither end notices"},
    {slow, "slow", path, kLasts, "bandwidth of a path down to a tenth"},
    {latency, "latency", path, kLasts, "latency of a path drawn anew, 0 to 400 ms"},
    {jitter, "jitter", path, kLasts, "jitter of a path, up to ten times its latency"},
    {one_way, "one_way", network, kLasts,
     "asymmetric partition: what some peers send to the others is held"},
    {partition, "partition", network, kLasts, "some peers, or a whole site, are cut off from the others"},
    {clog, "clog", network, kLasts, "swizzled: links stop one after the other, and go on in another order"},
    {kill, "kill", process, kOver | kEnds, "SIGKILL"},
    {stop, "stop", process, kLasts, "SIGSTOP, and SIGCONT after `lasts_s`"},
    {away, "away", process, kLasts, "the program does something else on the thread that computes"},
    {preempt_0s, "preempt_0s", process, kOver | kEnds, "the machine is gone without notice"},
    {preempt_10s, "preempt_10s", process, kLasts, "notice, and the machine is gone 10 s later", 10s},
    {preempt_30s, "preempt_30s", process, kLasts, "notice, and the machine is gone 30 s later", 30s},
    {preempt_120s, "preempt_120s", process, kLasts, "notice, and the machine is gone 120 s later", 120s},
    {at_risk, "at_risk", process, kLasts, "the machine may be taken away soon; safe again after `lasts_s`"},
    {zone_loss, "zone_loss", process, kOver | kEnds,
     "the machines of a site (or two of them) are gone at once"},
    {return_stale, "return_stale", process, kEnds, "killed; comes back with its identity and its disk"},
    {relaunch, "relaunch", process, kEnds, "killed; started again with its address, command line and disk"},
    {rolling_relaunch, "rolling_relaunch", process, kLasts, "the same of all peers, one after the other"},
    {loss_of_all, "loss_of_all", process, kEnds,
     "all are killed; the first starts again at once, the others later"},
    {twin, "twin", process, kLasts, "a second process with the identity of one that runs"},
    {join, "join", process, kOver, "a peer joins"},
    {leave, "leave", process, kOver, "a peer hands in what is done, and goes"},
    {end_run, "end_run", process, kOver, "the program of a peer ends the run for all"},
    {disk_full, "disk_full", disk, kOver, "no space is left"},
    {disk_error, "disk_error", disk, kOver | kLoses, "reads and writes fail (EIO)"},
    {torn_write, "torn_write", disk, kOver | kEnds, "power is lost in the middle of a write"},
    {lost_fsync, "lost_fsync", disk, kOver | kEnds | kLoses,
     "what was said to be durable is not; power is lost later"},
    {bit_flip, "bit_flip", disk, kOver | kLoses, "one bit of a file changes"},
    {rename_lost, "rename_lost", disk, kOver | kEnds | kLoses,
     "a rename is not durable, and power is lost"},
    {store_away, "store_away", store, kLasts,
     "its stores of samples and checkpoints do not answer (two peers at most)"},
    {store_lacks, "store_lacks", store, kLasts, "its store lacks one sample in 16 (two peers at most)"},
    {memory_flip, "memory_flip", process, kOver,
     "one bit of its parameters changes in memory (not of the leader)"},
    {clock_jump, "clock_jump", process, kOver, "the wall clock of a peer jumps by an hour"},
    {send_nan, "send_nan", messages, kLasts, "contributions with values that are not a number"},
    {send_infinite, "send_infinite", messages, kLasts, "contributions with infinite values"},
    {send_huge, "send_huge", messages, kLasts, "contributions far beyond any honest norm"},
    {send_negated, "send_negated", messages, kLasts, "contributions with the sign turned"},
    {claim_more, "claim_more", messages, kLasts, "claims microbatches that it was never leased"},
    {replay, "replay", messages, kLasts, "sends again what belonged to an earlier round"},
    {duplicate, "duplicate", messages, kLasts, "sends everything twice"},
    {wrong_length, "wrong_length", messages, kLasts, "segments of a wrong length"},
    {wrong_round, "wrong_round", messages, kLasts, "messages that name a wrong round"},
    {malformed, "malformed", messages, kLasts, "random bytes in place of messages"},
    {truncated, "truncated", messages, kLasts, "messages that end early"},
    {flood, "flood", messages, kLasts, "half a megabyte for the next round with each segment"},
    {chunk_flip, "chunk_flip", messages, kLasts,
     "one bit changes in pieces of a state or mean that others fetch"},
    {forge_mean, "forge_mean", messages, kLasts,
     "offers zeros, with their digests, as the mean that others missed"},
};
  // clang-format on
};

constexpr bool is_in_order(std::span<const FaultRow> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<std::size_t>(rows[i].kind) != i) return false;
  }
  return true;
}

static_assert(is_in_order(Rows::kRows));

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

std::span<const FaultRow> fault_rows() { return Rows::kRows; }

const FaultRow& row_of(FaultKind kind) { return Rows::kRows[static_cast<std::size_t>(kind)]; }

std::string_view name_of(FaultKind kind) { return row_of(kind).name; }

const FaultRow* fault_named(std::string_view name) {
  const auto* found = std::ranges::find(Rows::kRows, name, &FaultRow::name);
  return found == std::end(Rows::kRows) ? nullptr : found;
}

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
