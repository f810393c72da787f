// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/residuals.h"

#include <algorithm>

#include "average/reduction/mean_digest.h"
#include "average/reduction/reference.h"
#include "average/reduction/residual.h"
#include "sim/virtual/trainer.h"
#include "train/learn/error_feedback.h"

namespace tw::sim {
namespace {

using wire::Contribution;

constexpr std::uint32_t kCarrier = train::ErrorFeedback::kCarrier;

void add(std::span<float> values, std::span<const float> more) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += more[i];
}

std::vector<float> sum_of(std::vector<float> values, std::span<const float> more) {
  add(values, more);
  return values;
}

/// The part of a residual that a contribution to this round carries.
template <class Floats>
auto part_of(Floats& residual, const wire::Record& record, const Rules& rules) {
  const auto& [first, geometry] = rules.fragments.of(record.round);
  return std::span(residual).subspan(first, geometry.length);
}

/// Without those that the run goes on without.
std::vector<train::SampleSpan> sound_samples(std::vector<train::SampleSpan> spans, const Rules& rules) {
  if (!rules.broken) return spans;
  std::vector<train::SampleSpan> sound;
  for (const train::SampleSpan span : spans) {
    for (std::uint64_t s = span.first; s < span.first + span.count; ++s)
      if (!rules.broken(s)) sound.push_back({s, 1});
  }
  return sound;
}

}  // namespace

std::vector<float> honest_sum(const wire::Record& record, const Contribution& contribution,
                              const Rules& rules) {
  const auto spans = sound_samples(samples_of(record, contribution.microbatches, rules), rules);
  const bool blind = train::is_local(rules.mode) || rules.digest_every > 1;
  const Digest parameters = blind ? SyntheticTrainer::kOwnCopy : record.parameters;
  return reference_contribution(parameters, spans, rules.geometry(record.round).length);
}

average::WeightedGradient weighted(const wire::Record& record, const Contribution& c,
                                   std::span<const float> sum, const Rules& rules) {
  average::WeightedGradient weighted{c.samples, sum, c.group};
  if (rules.stochastic) weighted.dither = average::dither_seed(record.round, c.peer, c.slot);
  return weighted;
}

void Residuals::on_event(PeerId peer, const world::Event& event) {
  const bool starts = event.phase() == world::Phase::start;
  if (!starts && event.phase() != world::Phase::restore) return;
  const bool is_first_process = starts && !carried_.contains(peer);
  carried_[peer] = Carried{{nothing()}, !is_first_process};
}

void Residuals::on_strike(const Strike& strike) {
  const bool hides = strike.kind == FaultKind::twin || strike.kind == FaultKind::memory_flip;
  if (hides) hidden_.insert(strike.victims.begin(), strike.victims.end());
}

bool Residuals::knows(const wire::Record& record) const {
  const auto hidden = [&](const Contribution& c) { return c.slot == kCarrier && hidden_.contains(c.peer); };
  return !rules_.error_feedback ||
         (std::none_of(record.contributors.begin(), record.contributors.end(), hidden) && all_tried(record));
}

bool Residuals::all_tried(const wire::Record& record) const {
  std::size_t all = 1;
  for (const Contribution& c : record.contributors) {
    all *= std::max<std::size_t>(1, choices(record, c).size());
    if (all > kMostChoices) return false;
  }
  return true;
}

void Residuals::on_commit(const Sighting& s) {
  if (!rules_.error_feedback) return;
  Carried& carried = carried_.try_emplace(s.peer, Carried{{nothing()}, true}).first->second;
  std::vector<const Contribution*> own;
  for (const Contribution& c : s.record.contributors) {
    if (c.peer == s.peer && c.samples > 0) own.push_back(&c);
  }
  constexpr std::size_t kMostDoubtful = 6;
  const std::size_t doubtful = carried.fresh ? std::min(own.size(), kMostDoubtful) : 0;
  std::set<Values> choices;
  for (std::size_t left_out = 0; left_out < std::size_t{1} << doubtful; ++left_out) {
    std::vector<const Contribution*> made;
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (i >= doubtful || (left_out >> i & 1U) == 0) made.push_back(own[i]);
    }
    for (const Values& before : carried.choices) choices.insert(after(s.record, made, before));
  }
  carried = {std::move(choices), false};
  after_[{s.digest, s.peer}].insert(carried.choices.begin(), carried.choices.end());
}

void Residuals::on_applied(const Sighting& s) {
  if (!rules_.error_feedback) return;
  const auto carried = carried_.find(s.peer);
  if (s.restored || carried == carried_.end() || carried->second.fresh)
    after_[{s.digest, s.peer}].insert(nothing());
}

Residuals::Values Residuals::after(const wire::Record& record, const std::vector<const Contribution*>& own,
                                   const Values& before) const {
  Values residual = before;
  for (const bool carries : {true, false}) {
    for (const Contribution* c : own) {
      if ((c->slot == kCarrier) != carries) continue;
      Values sum = honest_sum(record, *c, rules_);
      const std::span<float> part = part_of(residual, record, rules_);
      if (carries) sum = sum_of(std::move(sum), part);
      const Values loss =
          reference_loss(rules_.codec, weighted(record, *c, sum, rules_), rules_.geometry(record.round));
      if (carries) std::ranges::fill(part, 0.0F);
      add(part, loss);
    }
  }
  return residual;
}

const std::set<Residuals::Values>& Residuals::choices(const wire::Record& record,
                                                      const Contribution& c) const {
  static const std::set<Values> kNone = {Values{}};
  if (!rules_.error_feedback || c.slot != kCarrier) return kNone;
  const auto known = after_.find({record.parent, c.peer});
  return known == after_.end() ? kNone : known->second;
}

std::vector<std::vector<std::vector<float>>> Residuals::honest_sums(const wire::Record& record) const {
  std::vector<std::vector<Values>> all(1);
  for (const Contribution& c : record.contributors) {
    const Values sum = honest_sum(record, c, rules_);
    std::vector<std::vector<Values>> longer;
    for (const std::vector<Values>& sums : all) {
      for (const Values& residual : choices(record, c)) {
        if (longer.size() == kMostChoices) break;
        longer.push_back(sums);
        longer.back().push_back(residual.empty() ? sum : sum_of(sum, part_of(residual, record, rules_)));
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::vector<float> mean_of(const wire::Record& record, const std::vector<std::vector<float>>& sums,
                           const Rules& rules, const std::set<std::size_t>& negated) {
  std::vector<average::WeightedGradient> contributions;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Contribution& c = record.contributors[i];
    contributions.push_back(weighted(record, c, sums[i], rules));
    contributions.back().negated = negated.contains(i);
  }
  return reference_mean(rules.codec, contributions, rules.geometry(record.round));
}

std::vector<float> Residuals::honest_mean(const wire::Record& record) {
  std::vector<std::vector<Values>> right;
  std::vector<float> first, recorded;
  for (const std::vector<Values>& sums : honest_sums(record)) {
    const std::vector<float> mean = mean_of(record, sums, rules_);
    if (first.empty()) first = mean;
    if (digest_of_mean(mean, rules_.geometry(record.round)) != record.mean) continue;
    recorded = mean;
    right.push_back(sums);
  }
  if (right.empty()) return first;
  if (all_tried(record)) rule_out_others(record, right);
  return recorded;
}

void Residuals::rule_out_others(const wire::Record& record, const std::vector<std::vector<Values>>& right) {
  for (std::size_t i = 0; i < record.contributors.size(); ++i) {
    const Contribution& c = record.contributors[i];
    const auto known = after_.find({record.parent, c.peer});
    if (c.slot != kCarrier || known == after_.end() || known->second.size() == 1) continue;
    const Values sum = honest_sum(record, c, rules_);
    const auto wrong = [&](const Values& residual) {
      const Values all = sum_of(sum, part_of(residual, record, rules_));
      return std::none_of(right.begin(), right.end(), [&](const auto& sums) { return sums[i] == all; });
    };
    std::set<Values>& carried = carried_[c.peer].choices;
    const bool all_wrong = std::all_of(carried.begin(), carried.end(), wrong);
    if (!all_wrong) std::erase_if(carried, wrong);
    std::erase_if(known->second, wrong);
  }
}

}  // namespace tw::sim
