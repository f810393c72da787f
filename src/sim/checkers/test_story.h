// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>

#include "average/reduction/mean_digest.h"
#include "average/reduction/reference.h"
#include "sim/checkers/checker.h"
#include "sim/checkers/ledger.h"
#include "sim/virtual/trainer.h"
#include "swarm/ballots/lineage.h"
#include "wire/frame.h"

/// For tests of the checkers.
namespace tw::sim {

inline const PeerId kAnn{11}, kBob{12}, kEve{13};

inline const Rules kRules{
    .batch = {20, 4}, .codec = codec::Codec::fp16, .fragments = average::Geometry{40, 16}};

/// A correct history of rounds by Ann and Bob, for tests to spoil.
struct Story {
  explicit Story(Checker& judge) : checker(judge) {}

  wire::Record genesis() const {
    wire::Record record;
    record.members = {{kAnn, "a"}, {kBob, "b"}};
    record.parameters = {9, 9};
    return record;
  }

  /// Microbatches 0-2 by Ann, 3-4 by Bob.
  wire::Record next(const wire::Record& before, const Digest& parameters, bool minority = false) const {
    wire::Record record;
    record.round = before.round + 1;
    record.parent = digest_of(before);
    record.members = before.members;
    record.first_sample = before.first_sample + before.samples;
    record.samples = 20;
    record.minority = minority;
    swarm::continue_lineage(record, before);
    record.parameters = parameters;
    record.contributors = {{kAnn, 0, 12, RangeSet({0, 3})}, {kBob, 0, 8, RangeSet({3, 2})}};
    const train::SampleSpan ann{record.first_sample, 12}, bob{record.first_sample + 12, 8};
    const auto first = reference_contribution(parameters, {&ann, 1}, 40);
    const auto second = reference_contribution(parameters, {&bob, 1}, 40);
    const average::WeightedGradient both[] = {{12, first}, {8, second}};
    record.mean = digest_of_mean(reference_mean(codec::Codec::fp16, both, kRules.fragments.largest()),
                                 kRules.fragments.largest());
    return record;
  }

  void commit(PeerId peer, const wire::Record& record) {
    ledger.add(digest_of(record), record);
    checker.on_commit({peer, record, digest_of(record)});
  }

  void apply(PeerId peer, const wire::Record& record, const Digest& parameters, bool restored = false) {
    ledger.add(digest_of(record), record);
    checker.on_applied({peer, record, digest_of(record), parameters, restored});
  }

  void commit_and_apply(PeerId peer, const wire::Record& record, const Digest& parameters) {
    commit(peer, record);
    apply(peer, record, parameters);
  }

  std::string verdict() const {
    return checker.violations().empty() ? "" : checker.violations().front().message;
  }

  Checker& checker;
  Ledger ledger;
};

inline Survivor finished(PeerId peer) {
  train::SessionView view;
  view.finished = true;
  return {peer, view};
}

/// Makes checkers with the story's ledger.
template <class T>
struct Judged {
  explicit Judged(const Rules& rules = kRules) : checker(make(rules, ledger)) {}

  static T make(const Rules& rules, const Ledger& ledger) {
    if constexpr (std::is_constructible_v<T, const Rules&, const Ledger&>)
      return T(rules, ledger);
    else if constexpr (std::is_constructible_v<T, const Rules&>)
      return T(rules);
    else
      return T(ledger);
  }

  void commit(PeerId peer, const wire::Record& record) {
    ledger.add(digest_of(record), record);
    story.commit(peer, record);
  }

  void apply(PeerId peer, const wire::Record& record, const Digest& parameters, bool restored = false) {
    ledger.add(digest_of(record), record);
    story.apply(peer, record, parameters, restored);
  }

  /// Looks at these peers five times a second from `from` to `to` (seconds).
  void look(std::initializer_list<PeerId> peers, double from_s, double to_s) {
    for (double at_s = from_s; at_s <= to_s; at_s += 0.2) {
      for (const PeerId peer : peers) checker.on_look({peer, {}, {}, at(at_s)});
    }
  }

  static Instant at(double seconds) { return Instant{} + from_seconds(seconds); }

  Ledger ledger;
  T checker;
  Story story{checker};
};

}  // namespace tw::sim
