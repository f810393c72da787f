// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/outgoing.h"

#include "base/check.h"

namespace tw::average {

void Outgoing::Queue::withdraw() {
  waiting_.clear();
  taken_ = 0;
}

void Outgoing::Queue::offer(std::uint64_t segment) {
  TW_CHECK(segment < handed_.size());
  if (!handed_[segment]) waiting_.push_back(segment);
}

std::optional<std::uint64_t> Outgoing::Queue::take() {
  if (empty()) return std::nullopt;
  const std::uint64_t segment = waiting_[taken_++];
  handed_[segment] = true;
  return segment;
}

void Outgoing::withdraw() {
  results_.withdraw();
  site_sums_.withdraw();
  contributions_.clear();
  contributions_taken_ = 0;
}

void Outgoing::offer_contribution(Piece piece) {
  TW_CHECK(piece.segment < results_.segments());
  auto& handed = contributions_handed_[piece.slot];
  handed.resize(results_.segments());
  if (!handed[piece.segment]) contributions_.push_back(piece);
}

std::optional<Outgoing::Piece> Outgoing::take_contribution() {
  if (contributions() == 0) return std::nullopt;
  const Piece piece = contributions_[contributions_taken_++];
  contributions_handed_[piece.slot][piece.segment] = true;
  return piece;
}

}  // namespace tw::average
