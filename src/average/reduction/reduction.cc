// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/reduction.h"

#include <fmt/format.h>

#include <algorithm>

#include "average/reduction/mean_digest.h"
#include "average/reduction/residual.h"
#include "average/reduction/weighted_sum.h"
#include "base/check.h"
#include "base/parallel.h"
#include "wire/frame.h"

namespace tw::average {

using wire::StallCause;

namespace {

struct Term {
  float weight = 0;
  Blob encoded;
};

struct Sum {
  Blob encoded;
  Digest decoded;
};

/// Adds terms in `codec` to a segment of their mean, which has so many values and is encoded in `of_mean`, in
/// `place` unless the only term is the mean.
Sum add(codec::Codec codec, codec::Codec of_mean, std::uint64_t values, const std::vector<Term>& terms,
        Buffer place) {
  TW_CHECK(!terms.empty());
  if (terms.size() == 1 && terms.front().weight == 1 && codec == of_mean) {
    const Blob& alone = terms.front().encoded;
    const auto decoded = digest_of_decoded(codec, alone.bytes(), values);
    TW_CHECK(decoded);  // is_addable
    return {alone, *decoded};
  }
  std::vector<Addend> addends;
  for (const Term& term : terms) addends.push_back({term.weight, term.encoded.bytes()});
  const Digest decoded = reduce_segment(codec, addends, values, place.bytes());
  return {Blob(std::move(place)), decoded};
}

Status fits_at(const Geometry& geometry, codec::Codec codec, std::uint64_t segment, std::size_t bytes) {
  if (segment >= geometry.segments())
    return Error{fmt::format("segment {} of a vector of {} segments", segment, geometry.segments())};
  const std::size_t expected = encoded_bytes(codec, geometry.size(segment));
  if (bytes != expected)
    return Error{fmt::format("segment {} of {} bytes instead of {}", segment, bytes, expected)};
  return Unit{};
}

Status is_of_step(const Reduction::Options& options, PeerId from, StepId step, std::uint64_t segment) {
  if (step != options.step)
    return Error{fmt::format("segment of round {} instead of {}", step.round, options.step.round)};
  if (from == options.self) return Error{fmt::format("segment {} from this peer itself", segment)};
  return Unit{};
}

}  // namespace

// Constructed on the loop thread, which has the memory of the sum; add_up() on any thread; the rest on the
// loop thread.
class Reduction::Addition {
 public:
  Addition(const Reduction& reduction, std::uint64_t segment)
      : reduction_(&reduction),
        segment_(segment),
        place_(encoded_bytes(reduction.mean_codec(), reduction.geometry().size(segment))) {}

  /// Any thread.
  void add_up();

  std::uint64_t segment() const { return segment_; }

  /// The inputs are judged in their order; false if one is unfit.
  bool admit(Reduction& reduction) const;

  Sum take_sum() { return std::move(sum_); }

 private:
  bool admit(Reduction& reduction, std::size_t at) const;

  const Group& group() const { return *reduction_->layout_.own_group(); }

  const Reduction* reduction_;
  std::uint64_t segment_;
  Buffer place_;
  std::vector<OwnSlots::Piece> own_;  // by input, without their bytes; those of others are empty
  Sum sum_;                           // empty if an own piece is not addable
};

// I4: all inputs are here, and they are added in the order of the plan, so that each peer that adds gets the
// same bits.
void Reduction::Addition::add_up() {
  const Reduction& r = *reduction_;
  const codec::Codec codec = r.options_.codec;
  const auto of_sums = static_cast<float>(1.0 / static_cast<double>(group().samples));
  own_.resize(group().inputs.size());
  std::vector<Term> terms;
  bool addable = true;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const Input& input = group().inputs[i];
    terms.push_back({carries_sums(codec) ? of_sums : input.weight, {}});
    if (input.peer != r.options_.self) {
      terms.back().encoded = r.kept_.find(input.peer, input.slot, segment_);
      continue;
    }
    own_[i] = r.own_.encode(input.slot, segment_, r.fitness_);
    addable = addable && own_[i].addable;
    terms.back().encoded = std::exchange(own_[i].encoded, {});
  }
  if (addable) sum_ = add(codec, r.mean_codec(), r.geometry().size(segment_), terms, std::move(place_));
}

bool Reduction::Addition::admit(Reduction& reduction) const {
  for (std::size_t i = 0; i < own_.size(); ++i) {
    if (!admit(reduction, i)) return false;
  }
  return true;
}

// Without the number of samples, a sum was not judged when it came.
bool Reduction::Addition::admit(Reduction& r, std::size_t at) const {
  const Input& input = group().inputs[at];
  if (input.peer == r.options_.self) return r.own_.admit(input.slot, segment_, own_[at], r.fitness_);
  if (!carries_sums(r.options_.codec)) return true;
  const std::optional<Unfit> unfit =
      r.fitness_.judge(input.peer, true, r.kept_.squares(input.peer, input.slot), input.samples);
  if (unfit) r.fitness_.report(*unfit);
  return !unfit;
}

Reduction::Reduction(Options options)
    : options_(std::move(options)),
      fitness_(options_.codec, options_.norm_cap),
      own_(options_.self, geometry()),
      kept_(geometry().segments()),
      site_sums_(geometry().segments()),
      mean_(geometry(), mean_codec()),
      early_(geometry().segments()) {
  TW_CHECK(encoded_bytes(options_.codec, geometry().segment_length) <= wire::kMaxPayloadBytes);
  TW_CHECK(encoded_bytes(mean_codec(), geometry().segment_length) <= wire::kMaxPayloadBytes);
}

void Reduction::contribute(std::uint32_t slot, GradientSum gradient_sum, std::uint64_t samples,
                           std::span<const float> residual) {
  const std::uint32_t seed = dither_seed(options_.step.round, options_.self, slot);
  own_.put(slot, std::move(gradient_sum), samples, residual,
           encoding_of(options_.codec, options_.stochastic, seed));
  const Input* input = layout_.input(options_.self, slot);
  if (input == nullptr || !is_mine(*input)) return;
  count_missing();
  seal_ready();
  requeue();
}

bool Reduction::adopt(const swarm::SharedPlan& shared) {
  const wire::Plan& plan = *shared;
  if (plan_ && swarm::number_of(plan) <= swarm::number_of(*plan_)) return false;
  if (plan.step() != options_.step) return false;
  std::optional<Layout> layout = Layout::of(plan, geometry().segments(), options_.self);
  if (!layout) return false;
  const std::uint64_t set = contribution_set(plan.draft);
  const bool changed = !plan_ || set != mean_.set();
  lay_out(plan, std::move(*layout));
  if (changed) change_set(set);
  for (const EarlyResults::Mean& early : early_.means_of(set)) {
    for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
      if (early.segments[s].empty() || mean_.has(s)) continue;
      if (!mean_.take(s, early.segments[s])) fitness_.report({early.from});
    }
  }
  plan_ = shared;
  fitness_.report_again(plan.draft);
  seal_ready();
  requeue();
  return true;
}

void Reduction::lay_out(const wire::Plan& plan, Layout layout) {
  layout_ = std::move(layout);
  early_.know(plan);
  const std::set<PeerId> participants(plan.participants.begin(), plan.participants.end());
  std::erase_if(outgoing_, [&](const auto& entry) { return !participants.contains(entry.first); });
  for (const PeerId peer : plan.participants) {
    if (peer != options_.self) outgoing_.try_emplace(peer, geometry().segments());
  }
  const Group* own = layout_.own_group();
  if (own != nullptr && own->set != own_set_) {
    own_set_ = own->set;
    site_sums_.assign(geometry().segments(), Blob());
    site_sum_bytes_ = 0;
    for (auto& [peer, outgoing] : outgoing_) outgoing.forget_site_sums();
  }
  count_missing();
}

void Reduction::count_missing() {
  missing_.assign(geometry().segments(), 0);
  const Group* own = layout_.own_group();
  if (own == nullptr) return;
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (!layout_.owns(s)) continue;
    for (const Input& input : own->inputs) missing_[s] += is_here(input, s) ? 0 : 1;
  }
}

void Reduction::change_set(std::uint64_t set) {
  mean_.change_set(set);
  for (auto& [peer, outgoing] : outgoing_) outgoing.forget_results();
}

void Reduction::requeue() {
  for (auto& [peer, outgoing] : outgoing_) outgoing.withdraw();
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (mean_.has(s)) offer_result(s);
    if (!site_sums_[s].empty()) offer_site_sum(s);
  }
  for (const Group& group : layout_.groups()) {
    for (const Input& input : group.inputs) {
      for (std::uint64_t s = 0; is_mine(input) && s < geometry().segments(); ++s) {
        const std::optional<PeerId> owner = layout_.owner(group.site, s);
        if (!owner || owner == options_.self || layout_.closed(group.site, s)) continue;
        outgoing_.at(*owner).offer_contribution({input.slot, s});
      }
    }
  }
  to_scatter_ = 0;
  for (auto& [peer, outgoing] : outgoing_) {
    to_scatter_ += outgoing.contributions();
    if (!outgoing.empty()) woken_.insert(peer);
  }
}

Status Reduction::fits(const wire::Scatter& scatter) const {
  return fits_at(geometry(), options_.codec, scatter.segment, scatter.payload.size());
}

Status Reduction::fits(const wire::Gather& gather) const {
  return fits_at(geometry(), mean_codec(), gather.segment, gather.payload.size());
}

Status Reduction::on_scatter(PeerId from, const wire::Scatter& scatter) {
  const std::uint64_t segment = scatter.segment;
  const std::uint32_t slot = scatter.slot;
  if (Status sound = is_of_step(options_, from, scatter.step, segment); !sound) return sound;
  if (Status sound = fits(scatter); !sound) return sound;
  const auto name = [&] {
    return fmt::format("contribution of peer {}, slot {}, segment {}", from.value, slot, segment);
  };
  if (slot >= wire::kMostSlots)
    return Error{fmt::format("{}: slots end at {}", name(), wire::kMostSlots - 1)};
  if (kept_.has(from, slot, segment)) return Error{name() + ": sent twice"};
  const bool asked_for = layout_.is_addend(from, slot, segment);
  const std::uint64_t vector = encoded_bytes(options_.codec, geometry());
  const std::uint64_t bound = kEarlyVectors * (vector + KeptContributions::slot_bytes(geometry().segments()));
  if (!asked_for && kept_.bytes(from) + scatter.payload.size() > bound) {
    return Error{fmt::format("{}: beyond {} bytes that no plan asks for", name(), bound)};
  }
  const auto piece = scatter.payload.bytes();
  const Input* input = layout_.input(from, slot);
  const std::uint64_t samples = input == nullptr ? 0 : input->samples;
  const double squares = fitness_.squares_of(piece), all = kept_.squares(from, slot) + squares;
  if (const auto unfit = fitness_.judge(from, is_addable(options_.codec, piece), all, samples)) {
    fitness_.report(*unfit);
    if (unfit->why == StallCause::not_finite) return Error{name() + ": holds NaN or infinity"};
    return Error{
        fmt::format("{}: norm {} per sample, beyond the cap {}", name(), unfit->norm, options_.norm_cap)};
  }
  kept_.put(from, slot, segment, scatter.payload, squares);
  if (!asked_for) return Unit{};
  TW_CHECK(missing_[segment] > 0);
  --missing_[segment];
  seal_and_offer(segment);
  return Unit{};
}

Status Reduction::on_gather(PeerId from, const wire::Gather& gather) {
  const std::uint64_t segment = gather.segment;
  if (Status sound = is_of_step(options_, from, gather.step, segment); !sound) return sound;
  if (Status sound = fits(gather); !sound) return sound;
  if (gather.of_site) return take_site_sum(from, gather);
  if (!early_.put(from, gather)) {
    return Error{fmt::format("mean of segment {} from peer {}: sent twice", segment, from.value)};
  }
  if (!plan_ || !early_.knows(from) || gather.set != mean_.set() || mean_.has(segment)) return Unit{};
  if (!mean_.take(segment, gather.payload)) {
    fitness_.report({from});
    return Error{fmt::format("mean of segment {} from peer {}: holds NaN or infinity", segment, from.value)};
  }
  offer_result(segment);
  return Unit{};
}

Status Reduction::take_site_sum(PeerId from, const wire::Gather& gather) {
  const auto name = [&] {
    return fmt::format("mean of the site of peer {}, segment {}", from.value, gather.segment);
  };
  if (!is_addable(mean_codec(), gather.payload.bytes())) {
    fitness_.report({from});
    return Error{name() + ": holds NaN or infinity"};
  }
  if (!early_.put(from, gather)) return Error{name() + ": sent twice"};
  if (plan_) seal_and_offer(gather.segment);
  return Unit{};
}

// An own contribution that is here, with the number of samples that the plan counts on.
bool Reduction::is_mine(const Input& input) const {
  return input.peer == options_.self && own_.has(input.slot, input.samples);
}

bool Reduction::is_here(const Input& input, std::uint64_t segment) const {
  if (input.peer == options_.self) return is_mine(input);
  return kept_.has(input.peer, input.slot, segment);
}

void Reduction::seal_ready() {
  std::vector<std::uint64_t> ready;
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (may_add_contributions(s)) ready.push_back(s);
  }
  add_contributions(ready);
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (lacks_mean(s)) add_site_sums(s);
  }
}

void Reduction::seal_and_offer(std::uint64_t segment) {
  const bool had_site_sum = !site_sums_[segment].empty(), had_mean = mean_.has(segment);
  seal_if_ready(segment);
  if (!had_mean && mean_.has(segment)) offer_result(segment);
  if (!had_site_sum && !site_sums_[segment].empty()) offer_site_sum(segment);
}

void Reduction::seal_if_ready(std::uint64_t segment) {
  if (may_add_contributions(segment)) add_contributions({segment});
  if (lacks_mean(segment)) add_site_sums(segment);
}

bool Reduction::lacks_mean(std::uint64_t segment) const {
  return layout_.is_root(segment) && !mean_.has(segment);
}

// This peer has to make the site-local sum of the segment, and it is still needed.
bool Reduction::lacks_site_sum(std::uint64_t segment) const {
  if (layout_.own_group() == nullptr || !layout_.owns(segment) || !site_sums_[segment].empty()) return false;
  if (layout_.closed(*layout_.site(), segment)) return false;
  return !layout_.is_root(segment) || !mean_.has(segment);
}

bool Reduction::may_add_contributions(std::uint64_t segment) const {
  return lacks_site_sum(segment) && missing_[segment] == 0;
}

// Threads share the segments. One unfit input leaves the segment open: the leader hears of its peer and makes
// another plan.
void Reduction::add_contributions(const std::vector<std::uint64_t>& segments) {
  std::vector<Addition> additions;
  for (const std::uint64_t segment : segments) additions.emplace_back(*this, segment);
  in_parallel(options_.threads, additions.size(), [&](std::size_t i) { additions[i].add_up(); });
  for (Addition& addition : additions) {
    if (!addition.admit(*this)) continue;
    const std::uint64_t segment = addition.segment();
    Sum sum = addition.take_sum();
    TW_CHECK(!sum.encoded.empty());
    if (layout_.is_root(segment) && layout_.groups().size() == 1) {
      mean_.put(segment, std::move(sum.encoded), sum.decoded);
      continue;
    }
    site_sum_bytes_ += sum.encoded.size();
    site_sums_[segment] = std::move(sum.encoded);
  }
}

void Reduction::add_site_sums(std::uint64_t segment) {
  std::vector<Term> terms;
  for (const Group& group : layout_.groups()) {
    terms.push_back({group.weight, site_sum_of(group, segment)});
    if (terms.back().encoded.empty()) return;
  }
  if (terms.empty()) return;
  Sum sum = add(mean_codec(), mean_codec(), geometry().size(segment), terms,
                Buffer(encoded_bytes(mean_codec(), geometry().size(segment))));
  mean_.put(segment, std::move(sum.encoded), sum.decoded);
}

// Empty if it is not here.
Blob Reduction::site_sum_of(const Group& group, std::uint64_t segment) const {
  if (&group == layout_.own_group() && !site_sums_[segment].empty()) return site_sums_[segment];
  return early_.site_sum(group.set, segment);
}

void Reduction::offer_result(std::uint64_t segment) {
  for (const PeerId peer : layout_.receivers(segment)) {
    Outgoing& outgoing = outgoing_.at(peer);
    outgoing.offer_result(segment);
    if (!outgoing.empty()) woken_.insert(peer);
  }
}

void Reduction::offer_site_sum(std::uint64_t segment) {
  if (layout_.own_group() == nullptr || !layout_.owns(segment) || layout_.is_root(segment)) return;
  if (layout_.closed(*layout_.site(), segment)) return;
  Outgoing& outgoing = outgoing_.at(layout_.root(segment));
  outgoing.offer_site_sum(segment);
  if (!outgoing.empty()) woken_.insert(layout_.root(segment));
}

// What others wait for to add goes before what they only apply: a link that sends results first leaves others
// without work for theirs.
std::optional<wire::Message> Reduction::next_bulk(PeerId to) {
  const auto it = outgoing_.find(to);
  if (it == outgoing_.end()) return std::nullopt;
  Outgoing& outgoing = it->second;
  const auto next_result = [&]() -> std::optional<wire::Message> {
    const auto segment = outgoing.take_result();
    if (!segment) return std::nullopt;
    TW_CHECK(plan_ && mean_.has(*segment));
    return wire::Gather{options_.step, plan_->ballot,      plan_->version, mean_.set(),
                        *segment,      mean_.at(*segment), false};
  };
  if (outgoing.contributions() > 0 && rarely(options_.rarely, "reduction.result_first")) {
    if (auto result = next_result()) return result;
  }
  if (auto contribution = next_contribution(outgoing)) return contribution;
  if (const auto segment = outgoing.take_site_sum()) {
    TW_CHECK(plan_ && !site_sums_[*segment].empty());
    return wire::Gather{options_.step,        plan_->ballot, plan_->version, own_set_, *segment,
                        site_sums_[*segment], true};
  }
  return next_result();
}

std::optional<wire::Message> Reduction::next_contribution(Outgoing& outgoing) {
  while (const auto piece = outgoing.take_contribution()) {
    TW_CHECK(to_scatter_ > 0);
    --to_scatter_;
    OwnSlots::Piece own = own_.encode(piece->slot, piece->segment, fitness_);
    if (own_.admit(piece->slot, piece->segment, own, fitness_))
      return wire::Scatter{options_.step, piece->slot, piece->segment, std::move(own.encoded)};
  }
  return std::nullopt;
}

void Reduction::on_new_link(PeerId peer) {
  const auto it = outgoing_.find(peer);
  if (it == outgoing_.end()) return;
  it->second = Outgoing(geometry().segments());
  requeue();
}

void Reduction::on_lost_link(PeerId peer) {
  if (early_.knows(peer)) return;
  kept_.drop(peer);
  early_.drop(peer);
  fitness_.forget(peer);
}

std::vector<PeerId> Reduction::take_wakeups() {
  const std::set<PeerId> woken = std::exchange(woken_, {});
  return {woken.begin(), woken.end()};
}

bool Reduction::scattered() const {
  if (!plan_ || to_scatter_ > 0) return false;
  for (const wire::Contribution& c : plan_->draft.contributors) {
    if (c.peer == options_.self && !made(c)) return false;
  }
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (lacks_site_sum(s) || lacks_mean(s)) return false;
  }
  return true;
}

std::uint64_t Reduction::held_bytes() const {
  return kept_.held_bytes() + site_sum_bytes_ + early_.held_bytes() + mean_.held_bytes();
}

std::map<PeerId, StallCause> Reduction::owing() const {
  std::map<PeerId, StallCause> owing;
  if (!plan_ || !layout_.site()) return owing;
  const auto owes = [&](std::optional<PeerId> peer, StallCause what) {
    if (!peer || peer == options_.self) return;
    StallCause& first = owing.try_emplace(*peer, what).first->second;
    first = std::min(first, what);
  };
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (lacks_site_sum(s)) {
      for (const Input& input : layout_.own_group()->inputs)
        if (!is_here(input, s)) owes(input.peer, StallCause::owes_contribution);
    }
    if (mean_.has(s)) continue;
    if (!layout_.is_root(s)) {  // the mean comes from the root, or from the owner within its site
      const std::optional<PeerId> owner = layout_.owner(*layout_.site(), s);
      const bool from_root = layout_.owns(s) || owner == layout_.root(s);
      owes(from_root ? layout_.root(s) : owner, from_root ? StallCause::owes_mean : StallCause::owes_copy);
      continue;
    }
    for (const Group& group : layout_.groups()) {
      if (layout_.closed(group.site, s) || !site_sum_of(group, s).empty()) continue;
      owes(layout_.owner(group.site, s), StallCause::owes_site_sum);
    }
  }
  return owing;
}

// Senders of site-local sums or of relayed segments are not the cause: they wait themselves.
std::vector<Reduction::Debt> Reduction::debts() const {
  if (!plan_ || !layout_.site()) return {};
  std::map<PeerId, Debt> contributions, results;
  const auto count = [](Debt& debt, bool here) {
    ++debt.all;
    debt.here += here ? 1 : 0;
  };
  const Group* own = layout_.own_group();
  for (std::size_t i = 0; own != nullptr && i < own->inputs.size(); ++i) {
    const Input& input = own->inputs[i];
    if (input.peer == options_.self) continue;
    Debt& debt = contributions.try_emplace(input.peer, Debt{input.peer, true}).first->second;
    for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
      if (layout_.owns(s)) count(debt, mean_.has(s) || !site_sums_[s].empty() || is_here(input, s));
    }
  }
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    const bool from_root = layout_.owns(s) || layout_.owner(*layout_.site(), s) == layout_.root(s);
    if (!layout_.is_root(s) && from_root)
      count(results.try_emplace(layout_.root(s), Debt{layout_.root(s)}).first->second, mean_.has(s));
  }
  std::vector<Debt> debts;
  for (const auto& [peer, debt] : contributions)
    if (debt.all > 0) debts.push_back(debt);
  for (const auto& [peer, debt] : results) debts.push_back(debt);
  return debts;
}

RangeSet Reduction::missing_of(PeerId root) const {
  RangeSet missing;
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (layout_.root(s) == root && !mean_.has(s)) missing.add(Range{s, 1});
  }
  return missing;
}

}  // namespace tw::average
