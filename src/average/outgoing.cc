// SPDX-License-Identifier: Apache-2.0
#include "average/outgoing.h"

namespace tw {

void Outgoing::withdraw() {
  results_.clear();
  contributions_.clear();
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
  if (results_.empty()) return std::nullopt;
  const std::uint64_t segment = results_.front();
  results_.pop_front();
  results_handed_[segment] = true;
  return segment;
}

std::optional<Outgoing::Piece> Outgoing::take_contribution() {
  if (contributions_.empty()) return std::nullopt;
  const Piece piece = contributions_.front();
  contributions_.pop_front();
  contributions_handed_[piece.slot][piece.segment] = true;
  return piece;
}

}  // namespace tw
