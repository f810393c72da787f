// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "average/reduction/mean_digest.h"
#include "average/reduction/weighted_sum.h"
#include "base/check.h"
#include "wire/frame.h"

namespace tw::average {

using wire::StallCause;

Reduction::Reduction(Options options)
    : options_(std::move(options)),
      kept_(geometry().segments()),
      site_sums_(geometry().segments()),
      mean_(geometry(), mean_codec()),
      early_(geometry().segments()) {
  TW_CHECK(encoded_bytes(options_.codec, geometry().segment_length) <= wire::kMaxPayloadBytes);
  TW_CHECK(encoded_bytes(mean_codec(), geometry().segment_length) <= wire::kMaxPayloadBytes);
}

void Reduction::contribute(std::uint32_t slot, GradientSum gradient_sum, std::uint64_t samples,
                           std::span<const float> residual) {
  TW_CHECK(slot < wire::kMostSlots && !own_[slot] && samples > 0);
  TW_CHECK(gradient_sum.values.size() == geometry().length);
  TW_CHECK(residual.empty() || residual.size() == geometry().length);
  const std::uint32_t seed = dither_seed(options_.step.round, options_.self, slot);
  own_[slot] = OwnSlot{std::move(gradient_sum), residual, samples,
                       encoding_of(options_.codec, options_.stochastic, seed)};
  const Input* input = input_of(options_.self, slot);
  if (input == nullptr || own_slot(*input) == nullptr) return;
  count_missing();
  seal_ready();
  requeue();
}

bool Reduction::made(const wire::Contribution& contribution) const {
  if (contribution.peer != options_.self || contribution.slot >= wire::kMostSlots) return false;
  const std::optional<OwnSlot>& slot = own_[contribution.slot];
  return slot && slot->samples == contribution.samples;
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
  restore_results();
  plan_ = shared;
  report_again();
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
  if (own != nullptr && own->set != own_set_) change_own_set(own->set);
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

void Reduction::change_own_set(std::uint64_t set) {
  own_set_ = set;
  site_sums_.assign(geometry().segments(), Blob());
  site_sum_bytes_ = 0;
  for (auto& [peer, outgoing] : outgoing_) outgoing.forget_site_sums();
}

void Reduction::change_set(std::uint64_t set) {
  mean_.change_set(set);
  for (auto& [peer, outgoing] : outgoing_) outgoing.forget_results();
}

void Reduction::restore_results() {
  for (const EarlyResults::Mean& mean : early_.means_of(mean_.set())) {
    for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
      if (mean.segments[s].empty() || mean_.has(s)) continue;
      if (!mean_.take(s, mean.segments[s])) report({mean.from});
    }
  }
}

void Reduction::requeue() {
  for (auto& [peer, outgoing] : outgoing_) outgoing.withdraw();
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (mean_.has(s)) offer_result(s);
    if (!site_sums_[s].empty()) offer_site_sum(s);
  }
  for (const Group& group : layout_.groups()) {
    for (const Input& input : group.inputs) {
      if (own_slot(input) != nullptr) offer_contribution(group, input.slot);
    }
  }
  to_scatter_ = 0;
  for (auto& [peer, outgoing] : outgoing_) {
    to_scatter_ += outgoing.contributions();
    if (!outgoing.empty()) woken_.insert(peer);
  }
}

void Reduction::offer_contribution(const Group& group, std::uint32_t slot) {
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    const std::optional<PeerId> owner = layout_.owner(group.site, s);
    if (!owner || owner == options_.self || layout_.closed(group.site, s)) continue;
    outgoing_.at(*owner).offer_contribution({slot, s});
  }
}

Status Reduction::check(PeerId from, StepId step, std::uint64_t segment) const {
  if (step != options_.step) {
    return Error{fmt::format("segment of round {} instead of {}", step.round, options_.step.round)};
  }
  if (from == options_.self) return Error{fmt::format("segment {} from this peer itself", segment)};
  return Unit{};
}

Status Reduction::fits(const wire::Scatter& scatter) const {
  return fits(options_.codec, scatter.segment, scatter.payload.size());
}

Status Reduction::fits(const wire::Gather& gather) const {
  return fits(mean_codec(), gather.segment, gather.payload.size());
}

Status Reduction::fits(codec::Codec codec, std::uint64_t segment, std::size_t bytes) const {
  if (segment >= geometry().segments()) {
    return Error{fmt::format("segment {} of a vector of {} segments", segment, geometry().segments())};
  }
  const std::size_t expected = encoded_bytes(codec, geometry().size(segment));
  if (bytes != expected)
    return Error{fmt::format("segment {} of {} bytes instead of {}", segment, bytes, expected)};
  return Unit{};
}

Status Reduction::on_scatter(PeerId from, const wire::Scatter& scatter) {
  const std::uint64_t segment = scatter.segment;
  const std::uint32_t slot = scatter.slot;
  if (Status sound = check(from, scatter.step, segment); !sound) return sound;
  if (Status sound = fits(scatter); !sound) return sound;
  const auto name = [&] {
    return fmt::format("contribution of peer {}, slot {}, segment {}", from.value, slot, segment);
  };
  if (slot >= wire::kMostSlots)
    return Error{fmt::format("{}: slots end at {}", name(), wire::kMostSlots - 1)};
  if (!kept_.find(from, slot, segment).empty()) return Error{name() + ": sent twice"};
  const bool asked_for = addend(from, slot, segment) != nullptr;
  const std::uint64_t vector = encoded_bytes(options_.codec, geometry());
  const std::uint64_t bound = kEarlyVectors * (vector + KeptContributions::slot_bytes(geometry().segments()));
  if (!asked_for && kept_.bytes(from) + scatter.payload.size() > bound) {
    return Error{fmt::format("{}: beyond {} bytes that no plan asks for", name(), bound)};
  }
  const auto piece = scatter.payload.bytes();
  const Input* input = input_of(from, slot);
  const std::uint64_t samples = input == nullptr ? 0 : input->samples;
  const double squares = squares_of(piece), all = kept_.squares(from, slot) + squares;
  if (const auto unfit = judge(from, is_addable(options_.codec, piece), all, samples)) {
    report(*unfit);
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
  if (Status sound = check(from, gather.step, segment); !sound) return sound;
  if (Status sound = fits(gather); !sound) return sound;
  if (gather.of_site) return take_site_sum(from, gather);
  if (!early_.put(from, gather)) {
    return Error{fmt::format("mean of segment {} from peer {}: sent twice", segment, from.value)};
  }
  if (!plan_ || !early_.knows(from) || gather.set != mean_.set() || mean_.has(segment)) return Unit{};
  if (!mean_.take(segment, gather.payload)) {
    report({from});
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
    report({from});
    return Error{name() + ": holds NaN or infinity"};
  }
  if (!early_.put(from, gather)) return Error{name() + ": sent twice"};
  if (plan_) seal_and_offer(gather.segment);
  return Unit{};
}

std::vector<Reduction::Unfit> Reduction::take_unfit() { return std::exchange(unfit_news_, {}); }

double Reduction::squares_of(std::span<const std::byte> piece) const {
  return options_.norm_cap == 0 ? 0 : std::pow(norm(options_.codec, piece), 2);
}

// Without the number of samples, a sum is judged only when it is added.
std::optional<Reduction::Unfit> Reduction::judge(PeerId from, bool addable, double squares,
                                                 std::uint64_t samples) const {
  if (!addable) return Unfit{from};
  const bool is_sum = carries_sums(options_.codec);
  if (options_.norm_cap == 0 || (is_sum && samples == 0)) return std::nullopt;
  const double length = std::sqrt(squares) / static_cast<double>(is_sum ? samples : 1);
  if (length <= options_.norm_cap) return std::nullopt;
  return Unfit{from, StallCause::too_large, length};
}

// Squares of the judged segments of an own contribution, this one included; each segment counts once.
double Reduction::squares_with(OwnSlot& slot, std::uint64_t segment, std::span<const std::byte> piece) const {
  if (options_.norm_cap == 0) return 0;
  slot.judged.resize(geometry().segments());
  if (slot.judged[segment]) return slot.squares;
  slot.judged[segment] = true;
  return slot.squares += squares_of(piece);
}

void Reduction::report(const Unfit& unfit) {
  if (unfit_.emplace(unfit.peer, unfit).second) unfit_news_.push_back(unfit);
}

// The maker of this plan, another leader, may not have heard of it.
void Reduction::report_again() {
  for (const auto& [peer, unfit] : unfit_) {
    const bool counts = std::ranges::any_of(
        plan_->draft.contributors, [of = peer](const wire::Contribution& c) { return c.peer == of; });
    if (!counts) continue;
    const auto is_told = [of = peer](const Unfit& told) { return told.peer == of; };
    if (std::none_of(unfit_news_.begin(), unfit_news_.end(), is_told)) unfit_news_.push_back(unfit);
  }
}

const Reduction::Input* Reduction::input_of(PeerId peer, std::uint32_t slot) const {
  for (const Group& group : layout_.groups()) {
    for (const Input& input : group.inputs) {
      if (input.peer == peer && input.slot == slot) return &input;
    }
  }
  return nullptr;
}

// The input that this contribution is to this peer; null if it has none to add.
const Reduction::Input* Reduction::addend(PeerId peer, std::uint32_t slot, std::uint64_t segment) const {
  const Group* own = layout_.own_group();
  if (own == nullptr || !layout_.owns(segment)) return nullptr;
  const auto found = std::ranges::find_if(
      own->inputs, [&](const Input& input) { return input.peer == peer && input.slot == slot; });
  return found == own->inputs.end() ? nullptr : &*found;
}

const Reduction::OwnSlot* Reduction::own_slot(const Input& input) const {
  if (input.peer != options_.self) return nullptr;
  const std::optional<OwnSlot>& slot = own_[input.slot];
  return slot && slot->samples == input.samples ? &*slot : nullptr;
}

bool Reduction::is_here(const Input& input, std::uint64_t segment) const {
  if (input.peer == options_.self) return own_slot(input) != nullptr;
  return !kept_.find(input.peer, input.slot, segment).empty();
}

// Empty when the slot is unfit.
Blob Reduction::encode_own(OwnSlot& slot, std::uint64_t segment) {
  if (slot.unfit) return {};
  const std::uint64_t first = geometry().first(segment), count = geometry().size(segment);
  const auto values = slot.gradient_sum.values.subspan(first, count);
  const auto residual = slot.residual.empty() ? slot.residual : slot.residual.subspan(first, count);
  const auto fit = [&](Blob piece, bool addable) {
    slot.unfit = judge(options_.self, addable, squares_with(slot, segment, piece.bytes()), slot.samples);
    if (!slot.unfit) return piece;
    report(*slot.unfit);
    return Blob();
  };
  if (carries_sums(options_.codec) && residual.empty()) {  // the values themselves are what crosses the wire
    const auto piece = std::as_bytes(values);
    return fit(Blob::view(piece, slot.gradient_sum.owner), is_addable(options_.codec, piece));
  }
  Buffer bytes(encoded_bytes(options_.codec, count));
  const std::uint64_t of_mean = samples_of_mean(options_.codec, slot.samples);
  const auto scale = static_cast<float>(1.0 / static_cast<double>(of_mean));
  Encoding encoding = slot.encoding;
  if (encoding.dither) encoding.dither = encoding.dither->from(first);
  const bool addable = encode_sum(encoding, values, residual, scale, bytes.bytes());
  return fit(Blob(std::move(bytes)), addable);
}

// Empty when it is unfit.
Blob Reduction::kept_piece(const Input& input, std::uint64_t segment) {
  Blob piece = kept_.find(input.peer, input.slot, segment);
  if (!carries_sums(options_.codec)) return piece;
  const std::optional<Unfit> unfit =
      judge(input.peer, true, kept_.squares(input.peer, input.slot), input.samples);
  if (!unfit) return piece;
  report(*unfit);
  return {};
}

float Reduction::weight_of(const Input& input) const {
  if (!carries_sums(options_.codec)) return input.weight;
  return static_cast<float>(1.0 / static_cast<double>(layout_.own_group()->samples));
}

void Reduction::seal_ready() {
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) seal_if_ready(s);
}

void Reduction::seal_and_offer(std::uint64_t segment) {
  const bool had_site_sum = !site_sums_[segment].empty(), had_mean = mean_.has(segment);
  seal_if_ready(segment);
  if (!had_mean && mean_.has(segment)) offer_result(segment);
  if (!had_site_sum && !site_sums_[segment].empty()) offer_site_sum(segment);
}

void Reduction::seal_if_ready(std::uint64_t segment) {
  if (lacks_site_sum(segment) && missing_[segment] == 0) add_contributions(segment);
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

void Reduction::add_contributions(std::uint64_t segment) {
  TW_CHECK(layout_.own_group() != nullptr && site_sums_[segment].empty());
  std::vector<Term> terms;
  for (const Input& input : layout_.own_group()->inputs) {
    const bool own = input.peer == options_.self;
    terms.push_back(
        {weight_of(input), own ? encode_own(*own_[input.slot], segment) : kept_piece(input, segment)});
    if (terms.back().encoded.empty()) return;
  }
  if (layout_.is_root(segment) && layout_.groups().size() == 1) {
    return put_result(segment, add(options_.codec, segment, terms));
  }
  site_sums_[segment] = add(options_.codec, segment, terms).encoded;
  site_sum_bytes_ += site_sums_[segment].size();
}

void Reduction::add_site_sums(std::uint64_t segment) {
  std::vector<Term> terms;
  for (const Group& group : layout_.groups()) {
    terms.push_back({group.weight, site_sum_of(group, segment)});
    if (terms.back().encoded.empty()) return;
  }
  if (!terms.empty()) put_result(segment, add(mean_codec(), segment, terms));
}

// Empty if it is not here.
Blob Reduction::site_sum_of(const Group& group, std::uint64_t segment) const {
  if (&group == layout_.own_group() && !site_sums_[segment].empty()) return site_sums_[segment];
  return early_.site_sum(group.set, segment);
}

// Adds terms in this codec to a segment of their mean.
Reduction::Sum Reduction::add(codec::Codec codec, std::uint64_t segment,
                              const std::vector<Term>& terms) const {
  const std::uint64_t values = geometry().size(segment);
  TW_CHECK(!terms.empty());
  if (terms.size() == 1 && terms.front().weight == 1 && codec == mean_codec()) {
    const Blob& alone = terms.front().encoded;
    const auto decoded = digest_of_decoded(codec, alone.bytes(), values);
    TW_CHECK(decoded);  // is_addable
    return {alone, *decoded};
  }
  std::vector<Addend> addends;
  for (const Term& term : terms) addends.push_back({term.weight, term.encoded.bytes()});
  Buffer encoded(encoded_bytes(mean_codec(), values));
  const Digest decoded = reduce_segment(codec, addends, values, encoded.bytes());
  return {Blob(std::move(encoded)), decoded};
}

void Reduction::put_result(std::uint64_t segment, Sum result) {
  mean_.put(segment, std::move(result.encoded), result.decoded);
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

std::optional<wire::Message> Reduction::next_bulk(PeerId to) {
  const auto it = outgoing_.find(to);
  if (it == outgoing_.end()) return std::nullopt;
  Outgoing& outgoing = it->second;
  if (outgoing.contributions() > 0 && rarely(options_.rarely, "reduction.contribution_first")) {
    if (auto contribution = next_contribution(outgoing)) return contribution;
  }
  if (const auto segment = outgoing.take_result()) {
    TW_CHECK(plan_ && mean_.has(*segment));
    return wire::Gather{options_.step, plan_->ballot,      plan_->version, mean_.set(),
                        *segment,      mean_.at(*segment), false};
  }
  if (const auto segment = outgoing.take_site_sum()) {
    TW_CHECK(plan_ && !site_sums_[*segment].empty());
    return wire::Gather{options_.step,        plan_->ballot, plan_->version, own_set_, *segment,
                        site_sums_[*segment], true};
  }
  return next_contribution(outgoing);
}

std::optional<wire::Message> Reduction::next_contribution(Outgoing& outgoing) {
  while (const auto piece = outgoing.take_contribution()) {
    TW_CHECK(to_scatter_ > 0 && own_[piece->slot]);
    --to_scatter_;
    Blob encoded = encode_own(*own_[piece->slot], piece->segment);
    if (!encoded.empty())
      return wire::Scatter{options_.step, piece->slot, piece->segment, std::move(encoded)};
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
  unfit_.erase(peer);
}

std::vector<PeerId> Reduction::take_wakeups() {
  const std::set<PeerId> woken = std::exchange(woken_, {});
  return {woken.begin(), woken.end()};
}

bool Reduction::scattered() const {
  if (!plan_ || to_scatter_ > 0) return false;
  for (const wire::Contribution& c : plan_->draft.contributors) {
    if (c.peer == options_.self && own_slot(*input_of(c.peer, c.slot)) == nullptr) return false;
  }
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (lacks_site_sum(s) || lacks_mean(s)) return false;
  }
  return true;
}

std::uint64_t Reduction::held_bytes() const {
  return kept_.held_bytes() + site_sum_bytes_ + early_.held_bytes() + mean_.held_bytes();
}

Digest Reduction::mean_digest() const {
  TW_CHECK(complete());
  return mean_.digest();
}

std::vector<Blob> Reduction::mean_segments() const {
  TW_CHECK(complete());
  return mean_.segments();
}

std::map<PeerId, StallCause> Reduction::owing() const {
  std::map<PeerId, StallCause> owing;
  if (!plan_ || !layout_.site()) return owing;
  const Owes owes = [&](std::optional<PeerId> peer, StallCause what) {
    if (!peer || peer == options_.self) return;
    StallCause& first = owing.try_emplace(*peer, what).first->second;
    first = std::min(first, what);
  };
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (lacks_site_sum(s)) tell_missing_contributions(s, owes);
    if (!mean_.has(s)) tell_missing_result(s, owes);
  }
  return owing;
}

void Reduction::tell_missing_contributions(std::uint64_t segment, const Owes& owes) const {
  for (const Input& input : layout_.own_group()->inputs) {
    if (!is_here(input, segment)) owes(input.peer, StallCause::owes_contribution);
  }
}

// A root lacks site-local sums, every other peer the mean, from the root or from the owner within its site.
void Reduction::tell_missing_result(std::uint64_t segment, const Owes& owes) const {
  if (!layout_.is_root(segment)) {
    const std::optional<PeerId> owner = layout_.owner(*layout_.site(), segment);
    const bool from_root = layout_.owns(segment) || owner == layout_.root(segment);
    return from_root ? owes(layout_.root(segment), StallCause::owes_mean)
                     : owes(owner, StallCause::owes_copy);
  }
  for (const Group& group : layout_.groups()) {
    if (layout_.closed(group.site, segment) || !site_sum_of(group, segment).empty()) continue;
    owes(layout_.owner(group.site, segment), StallCause::owes_site_sum);
  }
}

// Senders of site-local sums or of relayed segments are not the cause: they wait themselves.
std::vector<Reduction::Debt> Reduction::debts() const {
  if (!plan_ || !layout_.site()) return {};
  std::map<PeerId, Debt> contributions, results;
  const auto count = [](std::map<PeerId, Debt>& debts, const Debt& kind, bool here) {
    Debt& debt = debts.try_emplace(kind.peer, kind).first->second;
    ++debt.all;
    debt.here += here ? 1 : 0;
  };
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    const bool sealed = mean_.has(s);
    const bool from_root = layout_.owns(s) || layout_.owner(*layout_.site(), s) == layout_.root(s);
    if (!layout_.is_root(s) && from_root) count(results, Debt{layout_.root(s)}, sealed);
    if (layout_.own_group() == nullptr || !layout_.owns(s)) continue;
    for (const Input& input : layout_.own_group()->inputs) {
      if (input.peer == options_.self) continue;
      count(contributions, Debt{input.peer, true}, sealed || !site_sums_[s].empty() || is_here(input, s));
    }
  }
  std::vector<Debt> debts;
  for (const auto& [peer, debt] : contributions) debts.push_back(debt);
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
