// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tw {

/// What one receiver is to be handed, and what it was handed already; nothing is handed twice.
class Outgoing {
 public:
  struct Piece {
    std::uint32_t slot = 0;
    std::uint64_t segment = 0;
  };

  explicit Outgoing(std::uint64_t segments) : results_handed_(segments) {}

  /// Results get another meaning (the set changed): they are handed again.
  void forget_results() { results_handed_.assign(results_handed_.size(), false); }

  /// Empties the queues; what was handed stays known.
  void withdraw();

  /// At most once for each segment between two withdrawals.
  void offer_result(std::uint64_t segment);
  void offer_contribution(Piece piece);

  std::optional<std::uint64_t> take_result();
  std::optional<Piece> take_contribution();

  std::size_t contributions() const { return contributions_.size() - contributions_taken_; }

  bool empty() const { return results_.size() == results_taken_ && contributions() == 0; }

 private:
  std::vector<bool> results_handed_;
  std::map<std::uint32_t, std::vector<bool>> contributions_handed_;  ///< by slot
  std::vector<std::uint64_t> results_;
  std::vector<Piece> contributions_;
  std::size_t results_taken_ = 0, contributions_taken_ = 0;
};

}  // namespace tw
