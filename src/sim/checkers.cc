// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers.h"

#include <fmt/format.h>

#include <algorithm>

#include "average/reference.h"
#include "sim/trainer.h"

namespace tw {
namespace {

constexpr Duration kUnnamedWait = std::chrono::seconds(5);

bool has_member(const Record& record, PeerId peer) {
  return std::any_of(record.members.begin(), record.members.end(),
                     [&](const Member& member) { return member.peer == peer; });
}

/// The run is over, and this peer is no member.
bool is_left_behind(const Ledger& ledger, PeerId peer) {
  const Record* newest = ledger.newest();
  return newest != nullptr && newest->last && !has_member(*newest, peer);
}

std::uint64_t count(std::span<const SampleSpan> spans) {
  std::uint64_t samples = 0;
  for (const SampleSpan span : spans) samples += span.count;
  return samples;
}

}  // namespace

std::vector<SampleSpan> samples_of(const Record& record, const RangeSet& microbatches,
                                   std::uint64_t microbatch) {
  std::vector<SampleSpan> spans;
  for (const Range range : microbatches.ranges()) {
    const std::uint64_t first = std::min(range.first * microbatch, record.samples);
    const std::uint64_t end = std::min(range.end() * microbatch, record.samples);
    spans.push_back({record.first_sample + first, end - first});
  }
  return spans;
}

void SameParameters::on_applied(const Sighting& s) {
  for (const First& first : firsts_[s.record.round]) {
    const bool comparable = first.record == s.digest || !ledger_.marked_fork(first.record, s.digest);
    if (comparable && first.parameters != s.parameters) {
      violated(fmt::format("round {}: peer {} has parameters {}, peer {} has {}", s.record.round,
                           first.peer.value, to_string(first.parameters), s.peer.value,
                           to_string(s.parameters)));
      return;
    }
    if (first.record == s.digest) return;
  }
  firsts_[s.record.round].push_back({s.peer, s.digest, s.parameters});
}

void AllOrNone::on_commit(const Sighting& s) { committed_.insert(s.digest); }

void AllOrNone::on_applied(const Sighting& s) {
  const auto head = heads_.find(s.peer);
  if (!s.restored && s.record.round > 0) {
    if (!committed_.contains(s.digest)) {
      violated(fmt::format("round {}: peer {} applied a record that nobody committed", s.record.round,
                           s.peer.value));
    }
    // The state before round 1 is everybody's own: nobody applies it.
    if (head == heads_.end() ? s.record.round > 1 : head->second != s.record.parent) {
      violated(
          fmt::format("round {}: peer {} applied it without the round before", s.record.round, s.peer.value));
    }
  }
  heads_[s.peer] = s.digest;
}

void AllOrNone::on_end(std::span<const Survivor> survivors) {
  const Record* last = ledger_.newest();
  if (last == nullptr) return;
  for (const Survivor& survivor : survivors) {
    if (!survivor.view.finished || !survivor.view.failure.empty())
      continue;  // L1 and failures tell about those
    const auto head = heads_.find(survivor.peer);
    const Record* record = head == heads_.end() ? nullptr : ledger_.find(head->second);
    const bool lived_through = has_member(*last, survivor.peer);
    if (lived_through && (record == nullptr || record->round < last->round)) {
      violated(fmt::format("round {}: peer {} is a member and lived, but has not applied it", last->round,
                           survivor.peer.value));
    }
  }
}

void ExactSamples::on_commit(const Sighting& s) {
  const Record& record = s.record;
  if (record.round == 0 || !seen_.insert(s.digest).second) return;
  RangeSet all;
  std::uint64_t samples = 0;
  for (const Contribution& c : record.contributors) {
    const std::string who = fmt::format("round {}: contribution {}/{}", record.round, c.peer.value, c.slot);
    if (all.intersects(c.microbatches)) violated(who + " repeats microbatches " + to_string(c.microbatches));
    const std::uint64_t expected = count(samples_of(record, c.microbatches, rules_.microbatch));
    if (c.samples != expected) {
      violated(fmt::format("{} weighs {} samples, its microbatches hold {}", who, c.samples, expected));
    }
    all.add(c.microbatches);
    samples += c.samples;
  }
  if (all != RangeSet(Range{0, rules_.microbatches()})) {
    violated(fmt::format("round {}: microbatches {} instead of all {}", record.round, to_string(all),
                         rules_.microbatches()));
  }
  const std::uint64_t first = (record.round - 1) * rules_.target_batch_size;
  if (samples != rules_.target_batch_size || record.samples != samples || record.first_sample != first) {
    violated(fmt::format("round {}: samples [{}, +{}), weights add up to {}; should be [{}, +{})",
                         record.round, record.first_sample, record.samples, samples, first,
                         rules_.target_batch_size));
  }
}

void ExactMean::on_commit(const Sighting& s) {
  const Record& record = s.record;
  if (record.round == 0 || !seen_.insert(s.digest).second) return;
  std::vector<std::vector<float>> sums;
  std::vector<WeightedGradient> contributions;
  for (const Contribution& c : record.contributors) {
    const auto spans = samples_of(record, c.microbatches, rules_.microbatch);
    if (c.samples == 0) {
      violated(fmt::format("round {}: contribution {}/{} has no weight", record.round, c.peer.value, c.slot));
      return;
    }
    sums.push_back(reference_contribution(record.parameters, spans, rules_.geometry.length));
    contributions.push_back({c.samples, sums.back()});
  }
  const Digest mean =
      digest_of(std::span<const float>(reference_mean(rules_.codec, contributions, rules_.geometry)));
  if (mean == record.mean) return;
  violated(fmt::format("round {}: the recorded mean is {}, that of its {} contributions {}", record.round,
                       to_string(record.mean), contributions.size(), to_string(mean)));
}

void KnownState::on_applied(const Sighting& s) { held_[s.peer].insert(s.parameters); }

void KnownState::on_commit(const Sighting& s) {
  if (s.record.round <= 1) return;  // begins with the state that everybody makes from the seed
  for (const Contribution& c : s.record.contributors) {
    if (held_[c.peer].contains(s.record.parameters)) continue;
    violated(fmt::format("round {}: peer {} contributed, but never held the state {} with which it began",
                         s.record.round, c.peer.value, to_string(s.record.parameters)));
  }
}

void OneHistory::on_commit(const Sighting& s) {
  std::set<Digest>& known = records_[s.record.round];
  if (!known.insert(s.digest).second) return;
  for (const Digest& other : known) {
    if (other == s.digest || ledger_.marked_fork(other, s.digest)) continue;
    violated(fmt::format("round {}: peer {} knows record {}, others know {}, and neither branch is marked",
                         s.record.round, s.peer.value, to_string(s.digest), to_string(other)));
  }
}

void RunEnds::on_end(std::span<const Survivor> survivors) {
  for (const Survivor& survivor : survivors) {
    if (survivor.view.finished || is_left_behind(ledger_, survivor.peer)) continue;
    violated(fmt::format("peer {} has not come beyond round {}; it waits for: {}", survivor.peer.value,
                         survivor.view.round, survivor.view.waiting.empty() ? "?" : survivor.view.waiting));
  }
}

void NobodyFails::on_look(const Survivor& survivor) {
  if (survivor.view.failure.empty() || is_left_behind(ledger_, survivor.peer)) return;
  violated(fmt::format("peer {} at round {}: {}", survivor.peer.value, survivor.view.round,
                       survivor.view.failure));
}

void WaitsAreNamed::on_look(const Survivor& survivor) {
  if (survivor.idle <= kUnnamedWait || !survivor.view.waiting.empty() || survivor.view.finished) return;
  if (!told_.insert(survivor.peer).second) return;
  violated(fmt::format("peer {} at round {} did nothing for {:.1f} s and does not say for whom it waits",
                       survivor.peer.value, survivor.view.round, to_seconds(survivor.idle)));
}

std::vector<std::unique_ptr<Checker>> all_checkers(const Rules& rules, const Ledger& ledger) {
  std::vector<std::unique_ptr<Checker>> checkers;
  checkers.push_back(std::make_unique<SameParameters>(ledger));
  checkers.push_back(std::make_unique<AllOrNone>(ledger));
  checkers.push_back(std::make_unique<ExactSamples>(rules));
  checkers.push_back(std::make_unique<ExactMean>(rules));
  checkers.push_back(std::make_unique<KnownState>());
  checkers.push_back(std::make_unique<OneHistory>(ledger));
  checkers.push_back(std::make_unique<RunEnds>(ledger));
  checkers.push_back(std::make_unique<NobodyFails>(ledger));
  checkers.push_back(std::make_unique<WaitsAreNamed>());
  return checkers;
}

}  // namespace tw
