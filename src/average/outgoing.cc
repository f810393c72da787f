// SPDX-License-Identifier: Apache-2.0
#include "average/outgoing.h"

namespace tw {

void Outgoing::withdraw() {
  results_.clear();
  contributions_.clear();
  results_taken_ = contributions_taken_ = 0;
}

void Outgoing::offer_result(std::uint64_t segment) {
  if (!results_handed_[segment]) results_.push_back(segment);
}

void Outgoing::offer_contribution(Piece piece) {
  auto& handed = contributions_handed_[piece.slot];
  handed.resize(results_handed_.size());
  if (!handed[piece.segment]) contributions_.push_back(piece);
}

std::optional<std::uint64_t> Outgoing::take_result() {
  if (results_taken_ == results_.size()) return std::nullopt;
  const std::uint64_t segment = results_[results_taken_++];
  results_handed_[segment] = true;
  return segment;
}

std::optional<Outgoing::Piece> Outgoing::take_contribution() {
  if (contributions() == 0) return std::nullopt;
  const Piece piece = contributions_[contributions_taken_++];
  contributions_handed_[piece.slot][piece.segment] = true;
  return piece;
}

}  // namespace tw
