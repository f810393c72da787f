// SPDX-License-Identifier: Apache-2.0
#include "train/learn/error_feedback.h"

#include <algorithm>
#include <utility>

#include "average/reduction/residual.h"

namespace tw::train {

ErrorFeedback::ErrorFeedback(const RunOptions& run, const average::Fragments& fragments, std::size_t threads)
    : run_(run),
      fragments_(fragments),
      threads_(threads),
      residual_(run.feeds_back() ? fragments.length() : 0) {}

void ErrorFeedback::announce(Round round) {
  if (!is_on()) return;
  const std::lock_guard lock(mutex_);
  unsettled_.insert(round);
}

bool ErrorFeedback::lacks(Round round) const {
  const std::lock_guard lock(mutex_);
  return !unsettled_.empty() && *unsettled_.begin() <= last_turn(round);
}

void ErrorFeedback::owe(Round round, std::vector<Counted> own) {
  if (!is_on()) return;
  const std::lock_guard lock(mutex_);
  owed_.push_back({round, std::move(own)});
}

std::optional<ErrorFeedback::Owed> ErrorFeedback::take(Round until) {
  std::unique_lock lock(mutex_);
  settled_.wait(lock, [&] { return !in_hand_ || *in_hand_ > until; });
  if (in_hand_ || owed_.empty() || owed_.front().round > until) return std::nullopt;
  Owed next = std::move(owed_.front());
  owed_.pop_front();
  in_hand_ = next.round;
  return next;
}

void ErrorFeedback::give_back() {
  {
    const std::lock_guard lock(mutex_);
    if (in_hand_) unsettled_.erase(*in_hand_);
    in_hand_.reset();
  }
  settled_.notify_all();
}

void ErrorFeedback::settle(Round until) {
  while (const std::optional<Owed> next = take(until)) {
    try {
      add(*next);
    } catch (...) {
      give_back();  // no other thread waits for ever
      throw;
    }
    give_back();
  }
}

void ErrorFeedback::drop() {
  if (!is_on()) return;
  std::unique_lock lock(mutex_);
  settled_.wait(lock, [this] { return !in_hand_; });
  std::ranges::fill(residual_, 0.0F);
  for (const Owed& owed : owed_) unsettled_.erase(owed.round);
  owed_.clear();
}

Round ErrorFeedback::last_turn(Round round) const {
  return round - std::min<Round>(round, fragments_.all().size());
}

std::span<const float> ErrorFeedback::carried(Round round, std::uint32_t slot) const {
  if (slot != kCarrier || !is_on()) return {};
  const average::Fragment& fragment = fragments_.of(round);
  return std::span(residual_).subspan(fragment.first, fragment.geometry.length);
}

std::span<float> ErrorFeedback::residual(Round round) {
  const average::Fragment& fragment = fragments_.of(round);
  return std::span(residual_).subspan(fragment.first, fragment.geometry.length);
}

// The contribution that carried the residual comes first.
void ErrorFeedback::add(const Owed& owed) {
  const average::Geometry& geometry = fragments_.of(owed.round).geometry;
  const auto keep = [&](const Counted& one, bool carrier) {
    const std::uint32_t seed = average::dither_seed(owed.round, one.of.peer, one.of.slot);
    const average::Encoding encoding = average::encoding_of(run_.codec, run_.dithers(), seed);
    const average::Contributed contributed{one.sum.values, one.of.samples, carrier};
    keep_loss(encoding, geometry, contributed, residual(owed.round), threads_);
  };
  for (const bool carrier : {true, false}) {
    for (const Counted& one : owed.own)
      if ((one.of.slot == kCarrier) == carrier) keep(one, carrier);
  }
}

}  // namespace tw::train
