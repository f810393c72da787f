// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tw::average {

/// Pieces that one receiver has to get, and those that it got already; nothing is sent twice.
class Outgoing {
 public:
  struct Piece {
    std::uint32_t slot = 0;
    std::uint64_t segment = 0;
  };

  explicit Outgoing(std::uint64_t segments) : results_(segments), site_sums_(segments) {}

  /// Results or site-local sums have another meaning since their set changed: they are sent again.
  void forget_results() { results_.forget(); }

  void forget_site_sums() { site_sums_.forget(); }

  /// Empties the queues, but remembers what was sent.
  void withdraw();

  /// At most once for each segment between two withdrawals.
  void offer_result(std::uint64_t segment) { results_.offer(segment); }

  void offer_site_sum(std::uint64_t segment) { site_sums_.offer(segment); }

  void offer_contribution(Piece piece);

  std::optional<std::uint64_t> take_result() { return results_.take(); }

  std::optional<std::uint64_t> take_site_sum() { return site_sums_.take(); }

  std::optional<Piece> take_contribution();

  std::size_t contributions() const { return contributions_.size() - contributions_taken_; }

  bool empty() const { return results_.empty() && site_sums_.empty() && contributions() == 0; }

 private:
  /// Segments of one mean.
  class Queue {
   public:
    explicit Queue(std::uint64_t segments) : handed_(segments) {}

    void forget() { handed_.assign(handed_.size(), false); }

    void withdraw();
    void offer(std::uint64_t segment);
    std::optional<std::uint64_t> take();

    bool empty() const { return waiting_.size() == taken_; }

    std::size_t segments() const { return handed_.size(); }

   private:
    std::vector<bool> handed_;
    std::vector<std::uint64_t> waiting_;
    std::size_t taken_ = 0;
  };

  Queue results_, site_sums_;
  std::map<std::uint32_t, std::vector<bool>> contributions_handed_;  ///< by slot
  std::vector<Piece> contributions_;
  std::size_t contributions_taken_ = 0;
};

}  // namespace tw::average
