// SPDX-License-Identifier: Apache-2.0
#include "swarm/leases/work.h"

#include "base/check.h"
#include "wire/limits.h"

namespace tw::swarm {

bool Work::is_news(Ballot ballot, std::uint32_t number) {
  const std::pair one(ballot, number);
  if (one < newest_) return false;
  newest_ = one;
  return true;
}

bool Work::lease(std::uint32_t slot, const RangeSet& microbatches, bool moved_on) {
  wire::SlotProgress& entry = slots_[slot];
  entry.slot = slot;
  RangeSet fresh = microbatches;
  fresh.remove(entry.done);
  fresh.remove(entry.held);
  if (closed_.contains(slot)) return fresh.empty();
  if (moved_on) moved_on_.insert(slot);
  entry.held.add(fresh);
  queued_ += fresh.count();
  return true;
}

std::optional<std::uint32_t> Work::keep(const RangeSet& microbatches) {
  std::uint32_t slot = wire::kLeaseSlots;
  while (slot < wire::kMostSlots && slots_.contains(slot)) ++slot;
  if (slot == wire::kMostSlots || microbatches.empty()) return std::nullopt;
  slots_[slot] = {slot, microbatches, {}};
  close(slot);
  return slot;
}

std::vector<wire::SlotProgress> Work::hand_out() {
  TW_CHECK(idle());
  drop_queued();
  std::vector<wire::SlotProgress> done;
  for (const auto& [slot, entry] : slots_) {
    if (entry.done.empty()) continue;
    close(slot);
    done.push_back(entry);
  }
  return done;
}

void Work::start_over() {
  for (auto& [slot, entry] : slots_) {
    entry = {slot, {}, {}};
    closed_.insert(slot);
  }
  under_way_.reset();
  queued_ = 0;
}

void Work::fail(std::uint64_t microbatch, FailedSample failed) {
  const RangeSet one(Range{microbatch, 1});
  failures_.microbatches.add(one);
  failed.skippable ? failures_.skippable.add(one) : failures_.skippable.remove(one);
  failures_.why = std::move(failed.why);
}

void Work::drop_queued() {
  for (auto& [slot, entry] : slots_) {
    entry.held = under_way_ && under_way_->slot == slot ? under_way_->microbatches : RangeSet();
  }
  queued_ = 0;
}

std::optional<WorkItem> Work::begin(std::uint64_t most) {
  TW_CHECK(most > 0);
  if (under_way_ || queued_ == 0) return std::nullopt;
  for (const auto& [slot, entry] : slots_) {
    if (entry.held.empty()) continue;
    RangeSet held = entry.held, fresh = entry.held;
    fresh.remove(failures_.microbatches);
    under_way_ = WorkItem{round_, slot, fresh.empty() ? held.take(most) : fresh.take(most)};
    under_way_->moved_on = moved_on_.contains(slot);
    under_way_->afresh = entry.done.empty();
    under_way_->skips = failures_.skippable.contains(under_way_->microbatches);
    queued_ -= under_way_->microbatches.count();
    begun_ = true;
    return under_way_;
  }
  return std::nullopt;
}

void Work::finish(std::uint64_t done) {
  TW_CHECK(under_way_.has_value());
  TW_CHECK(done <= under_way_->microbatches.count());
  wire::SlotProgress& entry = slots_[under_way_->slot];
  queued_ += under_way_->microbatches.count() - done;
  const RangeSet finished = under_way_->microbatches.take(done);
  entry.held.remove(finished);
  entry.done.add(finished);
  under_way_.reset();
}

RangeSet Work::waiting() const {
  RangeSet all;
  for (const auto& [slot, entry] : slots_) all.add(entry.held);
  if (under_way_) all.remove(under_way_->microbatches);
  return all;
}

RangeSet Work::held() const {
  RangeSet all;
  for (const auto& [slot, entry] : slots_) all.add(entry.held);
  return all;
}

std::vector<wire::SlotProgress> Work::progress() const {
  std::vector<wire::SlotProgress> all;
  for (const auto& [slot, entry] : slots_) {
    if (!entry.done.empty() || !entry.held.empty() || closed_.contains(slot)) all.push_back(entry);
  }
  return all;
}

bool Work::has_done_just(std::uint32_t slot, const RangeSet& microbatches) const {
  const auto found = slots_.find(slot);
  return found != slots_.end() && found->second.done == microbatches && found->second.held.empty();
}

bool Work::does_all_of(std::uint32_t slot, const RangeSet& microbatches) const {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return false;
  RangeSet rest = microbatches;
  rest.remove(found->second.done);
  rest.remove(found->second.held);
  return rest.empty();
}

bool Work::has_other_than(std::uint32_t slot, const RangeSet& microbatches) const {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return false;
  if (closed_.contains(slot)) return !found->second.done.empty() && found->second.done != microbatches;
  return !microbatches.contains(found->second.done) || !microbatches.contains(found->second.held);
}

}  // namespace tw::swarm
