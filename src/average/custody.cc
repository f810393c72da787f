// SPDX-License-Identifier: Apache-2.0
#include "average/custody.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "base/check.h"

namespace tw::average {
void Custody::open(StepId step) {
  if (step == step_) return;
  step_ = step;
  giving_.reset();
  arriving_.clear();
  words_.clear();
  kept_.clear();
}

// ---- giving

void Custody::give(PeerId to, std::vector<Sum> sums) {
  for (const Sum& sum : sums) TW_CHECK(sum.sum.values.size() == geometry().length);
  giving_ = Giving{to, std::move(sums)};
}

std::optional<wire::Message> Custody::next_segment(PeerId to) {
  if (!giving_ || giving_->to != to || giving_->sum == giving_->sums.size()) return std::nullopt;
  const Sum& sum = giving_->sums[giving_->sum];
  const std::span<const float> values =
      sum.sum.values.subspan(geometry().first(giving_->segment), geometry().size(giving_->segment));
  wire::EntrustedSum message{step_, sum.slot, giving_->segment,
                             Blob::view(std::as_bytes(values), sum.sum.owner)};
  if (++giving_->segment == geometry().segments()) {
    ++giving_->sum;
    giving_->segment = 0;
  }
  return message;
}

bool Custody::take_given() {
  if (!giving_ || giving_->sum < giving_->sums.size()) return false;
  return !std::exchange(giving_->told, true);
}

void Custody::on_new_link(PeerId peer) {
  if (!giving_ || giving_->to != peer) return;
  giving_->sum = 0;
  giving_->segment = 0;
  giving_->told = false;
}

// ---- keeping

Status Custody::on_segment(PeerId from, const wire::EntrustedSum& told) {
  if (told.step != step_) return Unit{};  // late: that round is decided
  const bool fits = told.slot < wire::kMostSlots && told.segment < geometry().segments() &&
                    told.payload.size() == geometry().size(told.segment) * sizeof(float);
  if (!fits) return Error{fmt::format("slot {}: not a segment of a sum of this round", told.slot)};
  const Key key{from, told.slot};
  if (!arriving_.contains(key) && arriving_.size() + kept_.size() >= kMostKept)
    return Error{fmt::format("slot {}: no room for a further sum that is handed over", told.slot)};
  Arriving& sum = arriving_[key];
  if (!sum.values) {
    // owners: as Arriving says
    sum.values = std::make_shared<std::vector<float>>(geometry().length);
    sum.here.assign(geometry().segments(), false);
    sum.missing = geometry().segments();
  }
  std::memcpy(sum.values->data() + geometry().first(told.segment), told.payload.bytes().data(),
              told.payload.size());
  if (!sum.here[told.segment]) --sum.missing;
  sum.here[told.segment] = true;
  return Unit{};
}

void Custody::on_entrust(PeerId from, const wire::Entrust& entrust) {
  if (entrust.round != step_.round || entrust.slots.size() > wire::kMostSlots) return;
  std::erase_if(words_, [&](const Whole& word) { return word.from == from; });
  words_.push_back({from, entrust});
}

bool Custody::is_whole(const Whole& word) const {
  return std::ranges::all_of(word.entrust.slots, [&](const wire::SlotProgress& slot) {
    const auto found = arriving_.find({word.from, slot.slot});
    return found != arriving_.end() && found->second.missing == 0;
  });
}

bool Custody::is_finite(const Whole& word) const {
  return std::ranges::all_of(word.entrust.slots, [&](const wire::SlotProgress& slot) {
    return std::ranges::all_of(*arriving_.at({word.from, slot.slot}).values,
                               [](float value) { return std::isfinite(value); });
  });
}

std::optional<Custody::Whole> Custody::take_whole() {
  const auto found = std::ranges::find_if(words_, [this](const Whole& word) { return is_whole(word); });
  if (found == words_.end()) return std::nullopt;
  Whole whole = std::move(*found);
  words_.erase(found);
  if (!is_finite(whole)) return std::nullopt;
  return whole;
}

void Custody::keep(PeerId from, std::uint32_t theirs, std::uint32_t own) {
  const auto found = arriving_.find({from, theirs});
  TW_CHECK(found != arriving_.end() && found->second.missing == 0 && !kept_.contains(own));
  kept_[own] = {*found->second.values, found->second.values};
  arriving_.erase(found);
}

GradientSum Custody::sum(std::uint32_t own) const {
  TW_CHECK(kept_.contains(own));
  return kept_.at(own);
}

std::uint64_t Custody::held_bytes() const {
  return (arriving_.size() + kept_.size()) * geometry().length * sizeof(float);
}

}  // namespace tw::average
