// SPDX-License-Identifier: Apache-2.0
#include "average/reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "average/mean_digest.h"
#include "average/residual.h"
#include "average/weighted_sum.h"
#include "base/check.h"
#include "wire/frame.h"

namespace tw {
namespace {

bool contains(const std::vector<PeerId>& peers, PeerId peer) {
  return std::find(peers.begin(), peers.end(), peer) != peers.end();
}

/// Samples over all contributions; 0 when they cannot be weighted.
std::uint64_t total_samples(const std::vector<Contribution>& contributors) {
  std::uint64_t total = 0;
  for (const Contribution& c : contributors) {
    if (c.samples == 0 || c.samples > UINT64_MAX - total) return 0;
    total += c.samples;
  }
  return total;
}

}  // namespace

Reduction::Reduction(Options options)
    : options_(std::move(options)),
      kept_(geometry().segments()),
      mean_(std::move(options_.memory)),
      encoded_(geometry().segments()),
      digests_(geometry().segments()),
      received_(geometry().segments()) {
  TW_CHECK(geometry().length > 0);
  mean_.resize(geometry().length);
  TW_CHECK(encoded_bytes(options_.codec, geometry().segment_length) <= kMaxPayloadBytes);
  TW_CHECK(encoded_bytes(mean_codec(), geometry().segment_length) <= kMaxPayloadBytes);
}

void Reduction::contribute(std::uint32_t slot, std::span<const float> gradient_sum, std::uint64_t samples,
                           std::span<const float> residual) {
  TW_CHECK(slot < kMaxSlots && !own_[slot] && samples > 0 && gradient_sum.size() == geometry().length);
  TW_CHECK(residual.empty() || residual.size() == geometry().length);
  own_[slot] = OwnSlot{gradient_sum, residual, samples};
  const Input* input = input_of(options_.self, slot);
  if (input == nullptr || own_slot(*input) == nullptr) return;
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (is_mine(s)) --missing_[s];
  }
  seal_ready();
  requeue();
}

bool Reduction::made(const Contribution& contribution) const {
  if (contribution.peer != options_.self || contribution.slot >= kMaxSlots) return false;
  const std::optional<OwnSlot>& slot = own_[contribution.slot];
  return slot && slot->samples == contribution.samples;
}

bool Reduction::well_formed(const Plan& plan) const {
  const std::vector<Contribution>& contributors = plan.draft.contributors;
  if (plan.draft.round != options_.round || !covers(plan.shares, geometry().segments())) return false;
  for (const Share& share : plan.shares) {
    if (!contains(plan.participants, share.owner)) return false;
  }
  std::set<std::pair<PeerId, std::uint32_t>> named;
  for (const Contribution& c : contributors) {
    if (c.slot >= kMaxSlots || !named.emplace(c.peer, c.slot).second) return false;
  }
  return total_samples(contributors) > 0;
}

bool Reduction::adopt(const Plan& plan) {
  if (plan_ && std::tie(plan.ballot, plan.version) <= std::tie(plan_->ballot, plan_->version)) return false;
  if (!well_formed(plan)) return false;
  const std::uint64_t set = contribution_set(plan.draft);
  const bool changed = !plan_ || set != set_;
  lay_out(plan);
  if (changed) change_set(set);
  restore_results();
  plan_ = plan;
  report_again();
  seal_ready();
  requeue();
  return true;
}

void Reduction::lay_out(const Plan& plan) {
  const std::uint64_t segments = geometry().segments();
  owners_.clear();
  closed_.clear();
  for (const Share& share : plan.shares) {
    owners_.insert(owners_.end(), share.count, share.owner);
    closed_.insert(closed_.end(), share.count, share.sealed);
  }
  const auto total = static_cast<double>(total_samples(plan.draft.contributors));
  inputs_.clear();
  for (const Contribution& c : plan.draft.contributors) {
    inputs_.push_back(
        {c.peer, c.slot, c.samples, static_cast<float>(static_cast<double>(c.samples) / total)});
    known_.insert(c.peer);
  }
  missing_.assign(segments, 0);
  for (std::uint64_t s = 0; s < segments; ++s) {
    if (owners_[s] != options_.self) continue;
    for (const Input& input : inputs_) missing_[s] += is_here(input, s) ? 0 : 1;
  }
  known_.insert(plan.participants.begin(), plan.participants.end());
  const std::set<PeerId> participants(plan.participants.begin(), plan.participants.end());
  std::erase_if(outgoing_, [&](const auto& entry) { return !participants.contains(entry.first); });
  for (const PeerId peer : plan.participants) {
    if (peer != options_.self) outgoing_.try_emplace(peer, segments);
  }
}

void Reduction::change_set(std::uint64_t set) {
  std::optional<Voted> leaving;
  if (complete()) leaving = Voted{set_, encoded_};
  set_ = set;
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (encoded_[s].empty()) continue;
    encoded_[s] = Blob();
    --results_here_;
  }
  for (auto& [peer, outgoing] : outgoing_) outgoing.forget_results();
  if (voted_ && voted_->set == set_) restore(options_.self, voted_->segments);
  if (leaving) voted_ = std::move(leaving);
}

void Reduction::restore_results() {
  for (const auto& [peer, latest] : received_.by_sender()) {
    if (latest.set == set_ && known_.contains(peer)) restore(peer, latest.segments);
  }
}

void Reduction::restore(PeerId from, const std::vector<Blob>& results) {
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (results[s].empty() || !encoded_[s].empty()) continue;
    if (!take_result(s, results[s])) report({from});
  }
}

void Reduction::requeue() {
  for (auto& [peer, outgoing] : outgoing_) outgoing.withdraw();
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (is_mine(s) && !encoded_[s].empty()) offer_result(s);
  }
  for (const Input& input : inputs_) {
    if (own_slot(input) == nullptr) continue;
    for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
      if (!is_mine(s) && !closed_[s]) outgoing_.at(owners_[s]).offer_contribution({input.slot, s});
    }
  }
  to_scatter_ = 0;
  for (auto& [peer, outgoing] : outgoing_) {
    to_scatter_ += outgoing.contributions();
    if (!outgoing.empty()) woken_.insert(peer);
  }
}

Status Reduction::check(PeerId from, Round round, std::uint64_t segment) const {
  if (round != options_.round) {
    return Error{fmt::format("segment of round {} instead of {}", round, options_.round)};
  }
  if (from == options_.self) return Error{fmt::format("segment {} from this peer itself", segment)};
  return Unit{};
}

Status Reduction::fits(const Scatter& scatter) const {
  return fits(options_.codec, scatter.segment, scatter.payload.size());
}

Status Reduction::fits(const Gather& gather) const {
  return fits(mean_codec(), gather.segment, gather.payload.size());
}

Status Reduction::fits(Codec codec, std::uint64_t segment, std::size_t bytes) const {
  if (segment >= geometry().segments()) {
    return Error{fmt::format("segment {} of a vector of {} segments", segment, geometry().segments())};
  }
  const std::size_t expected = encoded_bytes(codec, geometry().size(segment));
  if (bytes != expected)
    return Error{fmt::format("segment {} of {} bytes instead of {}", segment, bytes, expected)};
  return Unit{};
}

Status Reduction::on_scatter(PeerId from, const Scatter& scatter) {
  const std::uint64_t segment = scatter.segment;
  const std::uint32_t slot = scatter.slot;
  if (Status sound = check(from, scatter.round, segment); !sound) return sound;
  if (Status sound = fits(scatter); !sound) return sound;
  const auto name = [&] {
    return fmt::format("contribution of peer {}, slot {}, segment {}", from.value, slot, segment);
  };
  if (slot >= kMaxSlots) return Error{fmt::format("{}: slots end at {}", name(), kMaxSlots - 1)};
  if (!kept_.find(from, slot, segment).empty()) return Error{name() + ": sent twice"};
  const bool asked_for = is_mine(segment) && input_of(from, slot) != nullptr;
  const std::uint64_t vector = encoded_bytes(options_.codec, geometry());
  const std::uint64_t bound = kEarlyVectors * (vector + KeptContributions::slot_bytes(geometry().segments()));
  if (!asked_for && kept_.bytes(from) + scatter.payload.size() > bound) {
    return Error{fmt::format("{}: beyond {} bytes that no plan asks for", name(), bound)};
  }
  const auto piece = scatter.payload.bytes();
  if (const std::optional<Unfit> unfit = judge(from, piece, is_addable(options_.codec, piece))) {
    report(*unfit);
    if (unfit->why == Complaint::not_finite) return Error{name() + ": holds NaN or infinity"};
    return Error{
        fmt::format("{}: norm {} per sample, beyond the cap {}", name(), unfit->norm, options_.norm_cap)};
  }
  kept_.put(from, slot, segment, scatter.payload);
  if (!asked_for) return Unit{};
  --missing_[segment];
  if (encoded_[segment].empty()) {
    seal_if_ready(segment);
    if (!encoded_[segment].empty()) offer_result(segment);
  }
  return Unit{};
}

Status Reduction::on_gather(PeerId from, const Gather& gather) {
  const std::uint64_t segment = gather.segment;
  if (Status sound = check(from, gather.round, segment); !sound) return sound;
  if (Status sound = fits(gather); !sound) return sound;
  const ReceivedResults::Origin origin{{gather.ballot, gather.version}, gather.set};
  if (!received_.put(from, origin, segment, gather.payload)) {
    return Error{fmt::format("mean of segment {} from peer {}: sent twice", segment, from.value)};
  }
  if (!plan_ || !known_.contains(from) || gather.set != set_ || !encoded_[segment].empty()) return Unit{};
  if (!take_result(segment, gather.payload)) {
    report({from});
    return Error{fmt::format("mean of segment {} from peer {}: holds NaN or infinity", segment, from.value)};
  }
  if (is_mine(segment)) offer_result(segment);
  return Unit{};
}

std::vector<Reduction::Unfit> Reduction::take_unfit() { return std::exchange(unfit_news_, {}); }

std::optional<Reduction::Unfit> Reduction::judge(PeerId from, std::span<const std::byte> piece,
                                                 bool addable) const {
  if (!addable) return Unfit{from};
  if (options_.norm_cap == 0) return std::nullopt;
  const double length = norm(options_.codec, piece);  // what crosses the wire is a mean over samples already
  if (length <= options_.norm_cap) return std::nullopt;
  return Unfit{from, Complaint::too_large, length};
}

void Reduction::report(const Unfit& unfit) {
  if (unfit_.emplace(unfit.peer, unfit).second) unfit_news_.push_back(unfit);
}

// Whoever made this plan may not have heard of it: another leader.
void Reduction::report_again() {
  for (const auto& [peer, unfit] : unfit_) {
    const auto is_of = [of = peer](const Input& input) { return input.peer == of; };
    const auto is_told = [of = peer](const Unfit& told) { return told.peer == of; };
    if (std::none_of(inputs_.begin(), inputs_.end(), is_of)) continue;
    if (std::none_of(unfit_news_.begin(), unfit_news_.end(), is_told)) unfit_news_.push_back(unfit);
  }
}

const Reduction::Input* Reduction::input_of(PeerId peer, std::uint32_t slot) const {
  const auto it = std::find_if(inputs_.begin(), inputs_.end(),
                               [&](const Input& input) { return input.peer == peer && input.slot == slot; });
  return it == inputs_.end() ? nullptr : &*it;
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
  const auto values = slot.gradient_sum.subspan(first, count);
  const auto residual = slot.residual.empty() ? slot.residual : slot.residual.subspan(first, count);
  Buffer bytes(encoded_bytes(options_.codec, count));
  const auto scale = static_cast<float>(1.0 / static_cast<double>(slot.samples));
  slot.unfit =
      judge(options_.self, bytes.bytes(), encode_sum(options_.codec, values, residual, scale, bytes.bytes()));
  if (!slot.unfit) return Blob(std::move(bytes));
  report(*slot.unfit);
  return {};
}

void Reduction::seal_ready() {
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (is_mine(s) && encoded_[s].empty()) seal_if_ready(s);
  }
}

void Reduction::seal_if_ready(std::uint64_t segment) {
  if (missing_[segment] > 0) return;
  std::vector<Addend> addends;
  std::vector<Blob> pieces;  // what the addends look at
  for (const Input& input : inputs_) {
    if (input.peer == options_.self) {
      pieces.push_back(encode_own(*own_[input.slot], segment));
      if (pieces.back().empty()) return;
    } else {
      pieces.push_back(kept_.find(input.peer, input.slot, segment));
    }
    addends.push_back({input.weight, pieces.back().bytes()});
  }
  Buffer encoded(encoded_bytes(mean_codec(), geometry().size(segment)));
  reduce_segment(options_.codec, addends, encoded.bytes(), mean_of(segment));
  result_is_here(segment, Blob(std::move(encoded)));
}

bool Reduction::take_result(std::uint64_t segment, const Blob& encoded) {
  if (!decode(mean_codec(), encoded.bytes(), mean_of(segment))) return false;
  result_is_here(segment, encoded);
  return true;
}

void Reduction::result_is_here(std::uint64_t segment, Blob encoded) {
  encoded_[segment] = std::move(encoded);
  ++results_here_;
  digests_[segment] = digest_of(std::span<const float>(mean_of(segment)));
  if (results_here_ == geometry().segments()) mean_digest_ = digest_of_segments(digests_);
}

std::span<float> Reduction::mean_of(std::uint64_t segment) {
  return std::span(mean_).subspan(geometry().first(segment), geometry().size(segment));
}

void Reduction::offer_result(std::uint64_t segment) {
  for (auto& [peer, outgoing] : outgoing_) {
    outgoing.offer_result(segment);
    if (!outgoing.empty()) woken_.insert(peer);
  }
}

std::optional<Message> Reduction::next_bulk(PeerId to) {
  const auto it = outgoing_.find(to);
  if (it == outgoing_.end()) return std::nullopt;
  Outgoing& outgoing = it->second;
  if (outgoing.contributions() > 0 && rarely(options_.rarely, "reduction.contribution_first")) {
    if (auto contribution = next_contribution(outgoing)) return contribution;
  }
  if (const auto segment = outgoing.take_result()) {
    return Gather{options_.round, plan_->ballot, plan_->version, set_, *segment, encoded_[*segment]};
  }
  return next_contribution(outgoing);
}

std::optional<Message> Reduction::next_contribution(Outgoing& outgoing) {
  while (const auto piece = outgoing.take_contribution()) {
    --to_scatter_;
    Blob encoded = encode_own(*own_[piece->slot], piece->segment);
    if (!encoded.empty()) return Scatter{options_.round, piece->slot, piece->segment, std::move(encoded)};
  }
  return std::nullopt;
}

void Reduction::on_new_link(PeerId peer) {
  const auto it = outgoing_.find(peer);
  if (it == outgoing_.end()) return;
  it->second = Outgoing(geometry().segments());
  requeue();
}

std::vector<PeerId> Reduction::take_wakeups() {
  const std::set<PeerId> woken = std::exchange(woken_, {});
  return {woken.begin(), woken.end()};
}

bool Reduction::scattered() const {
  if (!plan_ || to_scatter_ > 0) return false;
  for (const Input& input : inputs_) {
    if (input.peer == options_.self && own_slot(input) == nullptr) return false;
  }
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (is_mine(s) && encoded_[s].empty()) return false;
  }
  return true;
}

std::uint64_t Reduction::held_bytes() const {
  const std::uint64_t vector = encoded_bytes(mean_codec(), geometry());
  return kept_.held_bytes() + received_.held_bytes() + (results_here_ > 0 ? vector : 0) +
         (voted_ ? vector : 0);
}

std::span<const float> Reduction::mean() const {
  TW_CHECK(complete());
  return mean_;
}

Digest Reduction::mean_digest() const {
  TW_CHECK(complete());
  return mean_digest_;
}

std::vector<Blob> Reduction::mean_segments() const {
  TW_CHECK(complete());
  return encoded_;
}

std::vector<PeerId> Reduction::owing_contributions() const {
  std::set<PeerId> owing;
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (!is_mine(s) || !encoded_[s].empty() || missing_[s] == 0) continue;
    for (const Input& input : inputs_) {
      if (!is_here(input, s)) owing.insert(input.peer);
    }
  }
  owing.erase(options_.self);
  return {owing.begin(), owing.end()};
}

std::vector<Reduction::Debt> Reduction::debts() const {
  if (!plan_ || !contains(plan_->participants, options_.self)) return {};
  std::map<PeerId, Debt> contributions, results;
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    const bool sealed = !encoded_[s].empty();
    if (!is_mine(s)) {
      Debt& debt = results.try_emplace(owners_[s], Debt{owners_[s]}).first->second;
      ++debt.all;
      debt.here += sealed ? 1 : 0;
      continue;
    }
    for (const Input& input : inputs_) {
      if (input.peer == options_.self) continue;
      Debt& debt = contributions.try_emplace(input.peer, Debt{input.peer, true}).first->second;
      ++debt.all;
      debt.here += sealed || is_here(input, s) ? 1 : 0;
    }
  }
  std::vector<Debt> debts;
  for (const auto& [peer, debt] : contributions) debts.push_back(debt);
  for (const auto& [peer, debt] : results) debts.push_back(debt);
  return debts;
}

RangeSet Reduction::missing_of(PeerId owner) const {
  RangeSet missing;
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (owners_[s] == owner && encoded_[s].empty()) missing.add(Range{s, 1});
  }
  return missing;
}

std::vector<PeerId> Reduction::owing() const {
  if (!plan_ || !contains(plan_->participants, options_.self)) return {};
  const std::vector<PeerId> contributions = owing_contributions();
  std::set<PeerId> owing(contributions.begin(), contributions.end());
  for (std::uint64_t s = 0; s < geometry().segments(); ++s) {
    if (encoded_[s].empty() && !is_mine(s)) owing.insert(owners_[s]);
  }
  return {owing.begin(), owing.end()};
}

}  // namespace tw
