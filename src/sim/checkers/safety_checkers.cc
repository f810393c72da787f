// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/safety_checkers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/range_text.h"
#include "swarm/ballots/lineage.h"
#include "swarm/ballots/quorum.h"
#include "train/session/meters/counted_time.h"
#include "wire/frame.h"

namespace tw::sim {
namespace {

using namespace std::chrono_literals;

/// Time is known from looks alone, several of them a second.
constexpr Duration kBetweenLooks = 1s;

std::uint64_t count(std::span<const train::SampleSpan> spans) {
  std::uint64_t samples = 0;
  for (const train::SampleSpan span : spans) samples += span.count;
  return samples;
}

}  // namespace

void SameParameters::on_strike(const Strike& strike) {
  if (strike.kind != FaultKind::memory_flip) return;
  damaged_.insert(strike.victims.begin(), strike.victims.end());
  damaged_parameters_.insert(strike.parameters);  // a joiner may take them before the victim's next update
}

bool SameParameters::is_excused(const Sighting& s) {
  const auto& firsts = firsts_[s.record.round];
  const bool is_right = std::ranges::any_of(firsts, [&](const First& first) {
    return first.record == s.digest && first.parameters == s.parameters;
  });
  if (s.restored) damaged_.erase(s.peer);
  if (s.restored && !is_right && damaged_parameters_.contains(s.parameters)) damaged_.insert(s.peer);
  if (!damaged_.contains(s.peer)) return false;
  if (!is_right) damaged_parameters_.insert(s.parameters);
  return true;
}

void SameParameters::on_applied(const Sighting& s) {
  if (is_excused(s)) return;
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
  const wire::Record* last = ledger_.newest();
  if (last == nullptr) return;
  const bool died_out = std::ranges::none_of(survivors, [&, newest = digest_of(*last)](const Survivor& s) {
    const auto head = heads_.find(s.peer);
    return head != heads_.end() && ledger_.leads_to(newest, head->second);
  });
  for (const Survivor& survivor : survivors) {
    if (!survivor.view.finished || !survivor.view.failure.empty()) continue;  // L1 and failures report those
    if (died_out && survivor.view.ending != train::Ending::complete) continue;
    const auto head = heads_.find(survivor.peer);
    const wire::Record* record = head == heads_.end() ? nullptr : ledger_.find(head->second);
    // Where two processes have one id, the other one may be the member.
    const bool lived_through = swarm::names(last->members, {survivor.peer, {}, survivor.incarnation});
    if (lived_through && (record == nullptr || record->round < last->round)) {
      violated(fmt::format("round {}: peer {} is a member and lived, but has not applied it", last->round,
                           survivor.peer.value));
    }
  }
}

void ExactSamples::on_event(PeerId peer, const world::Event& event) {
  if (event.phase() == world::Phase::start) committed_.erase(peer);
  if (const auto* skip = event.as<event::Skip>()) {
    const std::uint64_t sample = skip->sample.value();
    skipped_.insert(sample);
    if (!rules_.broken || !rules_.broken(sample))
      violated(fmt::format("round {}: peer {} skipped sample {}, which is not broken", event.round,
                           peer.value, sample));
  }
  note_left(event);
}

void ExactSamples::note_left(const world::Event& event) {
  const auto* again = event.as<event::Reissue>();
  if (again && again->next_round) left_[event.round].add(ranges_in(event.why).value_or(RangeSet{}));
}

/// A process that has taken part since the round before says which of its samples were skipped when it
/// commits. Another one may have come too late to know what its contribution is made of.
void ExactSamples::judge_skipped(const Sighting& s) {
  const std::string before = std::exchange(committed_[s.peer], to_string(s.digest));
  if (!rules_.broken || before != to_string(s.record.parent)) return;
  for (const wire::Contribution& c : s.record.contributors) {
    if (c.peer != s.peer) continue;
    for (const train::SampleSpan span : samples_of(s.record, c.microbatches, rules_)) {
      for (std::uint64_t i = span.first; i < span.first + span.count; ++i)
        if (rules_.broken(i) && !skipped_.contains(i))
          violated(fmt::format("round {}: peer {} did not say that it skipped sample {}", s.record.round,
                               s.peer.value, i));
    }
  }
}

/// Each skipped sample is one that the run used: none is lost beside its records.
void ExactSamples::on_end(std::span<const Survivor>) {
  const wire::Record* const last = ledger_.newest();
  if (skipped_.empty() || last == nullptr || !last->last) return;
  RangeSet used;
  for (const wire::Record* r = last; r != nullptr && r->round > 0; r = ledger_.find(r->parent)) {
    for (const wire::Contribution& c : r->contributors)
      for (const train::SampleSpan span : samples_of(*r, c.microbatches, rules_))
        used.add({span.first, span.count});
  }
  for (const std::uint64_t sample : skipped_)
    if (!used.contains(sample)) violated(fmt::format("sample {} was skipped, but no record has it", sample));
}

void ExactSamples::on_commit(const Sighting& s) {
  judge_skipped(s);
  const wire::Record& record = s.record;
  if (record.round == 0 || !seen_.insert(s.digest).second) return;
  RangeSet all;
  std::uint64_t samples = 0;
  for (const wire::Contribution& c : record.contributors) {
    const std::string who = fmt::format("round {}: contribution {}/{}", record.round, c.peer.value, c.slot);
    if (all.intersects(c.microbatches)) violated(who + " repeats microbatches " + to_string(c.microbatches));
    const std::uint64_t expected = count(samples_of(record, c.microbatches, rules_));
    if (c.samples != expected) {
      violated(fmt::format("{} weighs {} samples, its microbatches hold {}", who, c.samples, expected));
    }
    all.add(c.microbatches);
    samples += c.samples;
  }
  const bool may_be_short = !record.last && !rules_.batch.exact_batches;
  const bool enough = rules_.overlaps() && may_be_short
                          ? samples > 0
                          : (may_be_short ? 2 : 1) * samples >= rules_.batch_of(record);
  RangeSet told = all;
  if (may_be_short) told.add(left_[record.round]);
  const RangeSet batch(Range{0, rules_.microbatches_of(record)});
  if (!batch.contains(all) || !told.contains(batch) || !enough) {
    violated(fmt::format("round {}: microbatches {} instead of all {}", record.round, to_string(all),
                         rules_.microbatches_of(record)));
  }
  if (record.samples != samples) {
    violated(fmt::format("round {}: weights add up to {} samples, the record says {}", record.round, samples,
                         record.samples));
  }
  judge_batch(record);
}

void ExactSamples::judge_batch(const wire::Record& record) {
  const wire::Record* before = ledger_.find(record.parent);
  if (before == nullptr) return;
  RangeSet left_over;
  std::uint64_t first = 0;
  if (before->round > 0) {
    const RangeSet batch(Range{0, rules_.microbatches_of(*before)});
    for (const train::SampleSpan span : samples_of(*before, batch, rules_)) {
      left_over.add({span.first, span.count});
      if (span.first >= before->first_sample) first = span.first + span.count;
    }
    for (const wire::Contribution& c : before->contributors) {
      for (const train::SampleSpan span : samples_of(*before, c.microbatches, rules_))
        left_over.remove(Range{span.first, span.count});
    }
    first = std::max(first, before->first_sample);
  }
  // With overlap the work for a round begins before it is known what the one before leaves over.
  const RangeSet carried = rules_.overlaps() ? before->left : left_over;
  const RangeSet left = rules_.overlaps() ? left_over : RangeSet();
  if (record.carried != carried || record.first_sample != first) {
    violated(fmt::format("round {}: begins with samples [{}], then {}; should with [{}], then {}",
                         record.round, to_string(record.carried), record.first_sample, to_string(carried),
                         first));
  }
  if (record.left != left)
    violated(fmt::format("round {}: keeps samples [{}] for the next one, should [{}]", record.round,
                         to_string(record.left), to_string(left)));
}

void KnownState::on_applied(const Sighting& s) { held_[s.peer].insert(s.parameters); }

void KnownState::on_strike(const Strike& strike) {
  if (strike.kind == FaultKind::twin) shared_.insert(strike.victims.begin(), strike.victims.end());
}

void KnownState::on_commit(const Sighting& s) {
  if (s.record.round <= 1) return;  // begins with the state that everybody makes from the seed
  for (const wire::Contribution& c : s.record.contributors) {
    if (held_[c.peer].contains(s.record.parameters) || shared_.contains(c.peer)) continue;
    violated(fmt::format("round {}: peer {} contributed, but never held the state {} with which it began",
                         s.record.round, c.peer.value, to_string(s.record.parameters)));
  }
}

void OneHistory::on_commit(const Sighting& s) {
  std::set<Digest>& known = records_[s.record.round];
  if (!known.insert(s.digest).second) return;
  decided_.emplace(s.digest, now_);
  judge_patience(s);
  if (const auto found = weigh(s.digest).by_majority; found != s.record.majority_samples) {
    violated(fmt::format("round {}: the record of peer {} says that a majority decided {} samples, it was {}",
                         s.record.round, s.peer.value, s.record.majority_samples, found));
  }
  for (const Digest& other : known) {
    if (other == s.digest || ledger_.marked_fork(other, s.digest)) continue;
    violated(fmt::format("round {}: peer {} knows record {}, others know {}, and neither branch is marked",
                         s.record.round, s.peer.value, to_string(s.digest), to_string(other)));
  }
}

void OneHistory::on_event(PeerId peer, const world::Event& event) {
  if (event.phase() == world::Phase::start) heads_.erase(peer);
}

void OneHistory::on_applied(const Sighting& s) {
  const auto head = heads_.try_emplace(s.peer, s.digest).first;
  const Digest before = std::exchange(head->second, s.digest);
  if (ledger_.leads_to(before, s.digest) || ledger_.leads_to(s.digest, before)) return;
  const Weight &had = weigh(before), &has = weigh(s.digest);
  if (had.rank() <= has.rank()) return;
  violated(
      fmt::format("round {}: peer {} gave up a history of {} samples, of which a majority decided {}, for "
                  "one of {} and {}",
                  s.record.round, s.peer.value, had.in_all, had.by_majority, has.in_all, has.by_majority));
}

const OneHistory::Weight& OneHistory::weigh(const Digest& digest) {
  const auto known = weights_.find(digest);
  if (known != weights_.end()) return known->second;
  const wire::Record* record = ledger_.find(digest);
  const wire::Record* before = record == nullptr ? nullptr : ledger_.find(record->parent);
  Weight& weight = weights_[digest];  // stays where it is
  if (record == nullptr) return weight;
  weight.company = record->members.size() > 1;
  weight.in_all = record->samples_total();
  if (before == nullptr) {
    if (record->minority) weight.awaited = {swarm::kUnknownPeer};
    return weight;
  }
  const Weight& had = weigh(record->parent);
  weight.company = weight.company || had.company;
  const bool whole = had.awaited.empty() && !record->minority;
  weight.by_majority = had.by_majority + (whole ? record->samples : 0);
  // A round that begins anew from a checkpoint counts no more; one from the state that others had, it does.
  const bool again = record->round == before->round && had.awaited.empty() && !before->minority;
  if (again && record->majority_samples != weight.by_majority)
    weight.by_majority -= std::min(weight.by_majority, before->samples);
  if (whole) return weight;
  std::vector<PeerId> awaited = had.awaited;
  if (awaited.empty()) {
    for (const wire::Member& m : before->members) awaited.push_back(m.peer);
  }
  const auto back = static_cast<std::size_t>(
      std::ranges::count_if(awaited, [&](PeerId peer) { return swarm::is_member(record->members, peer); }));
  const bool first = !awaited.empty() && swarm::is_member(record->members, awaited.front());
  if (2 * back < awaited.size() + (first ? 0 : 1)) weight.awaited = std::move(awaited);
  return weight;
}

void OneHistory::on_strike(const Strike& strike) {
  if (strike.kind == FaultKind::clock_jump) jumps_ += train::CountedTime::kLongestStep;
}

void OneHistory::judge_patience(const Sighting& s) {
  const auto before = decided_.find(s.record.parent);
  if (!s.record.minority || before == decided_.end()) return;
  const Duration waited = now_ - before->second + kBetweenLooks + jumps_;
  if (waited >= rules_.patience) return;
  violated(fmt::format("round {}: peer {} decided it without a majority {:.1f} s after the round before",
                       s.record.round, s.peer.value, to_seconds(waited)));
}

}  // namespace tw::sim
