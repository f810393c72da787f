// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "wire/messages.h"
#include "wire/rank.h"

namespace tw::swarm {

/// The chain of decided records as this peer knows it: its newest record (the head), and the parameters with
/// which the next round begins. A value that knows neither clock nor socket; one thread.
class History {
 public:
  /// The newest record of this peer, if any.
  const std::optional<wire::Record>& head() const { return head_; }

  /// Digest of the head; zero without one.
  const Digest& digest() const { return digest_; }

  /// Parameters with which the round after the head begins; empty until the update of the head is applied.
  /// Without a head, the parameters from the seed.
  const std::optional<Digest>& parameters() const { return parameters_; }

  /// The rank by which histories are compared. Requires a head.
  wire::Rank rank() const;

  /// Processes that were members of a head here, by their first record and their place in it. Rounds without
  /// one (it was busy, or is gone) change nothing; another process with its id ends it.
  const std::vector<wire::Member>& by_age() const { return by_age_; }

  /// True for the round after the head.
  bool is_next(Round round) const { return head_ && round == head_->round + 1; }

  /// True for a draft or a record of the round after the head, in this history.
  bool continues(const wire::Record& record) const;

  enum class News {
    old,    ///< does not go before the head
    next,   ///< it decides what this peer voted for: the record follows the head
    other,  ///< it decides something that is not here: take the state from others
  };

  /// Meaning of a decided record for this peer, which has a head. `expected`: the record that its own plan
  /// becomes (Acceptor::expected). Member lists are compared, too, since drafts with different members can
  /// have one mean.
  News judge(const wire::Record& record, const std::optional<wire::Record>& expected) const;

  /// The parameters from the seed are ready. There is no head.
  void fresh(const Digest& parameters);

  /// The run begins with this record, or the state after it was taken from others. True when it was the head
  /// already: promises and votes of the next round still stand.
  bool begin(const wire::Record& record);

  /// The record that was decided after the head.
  void extend(const wire::Record& record);

  /// The update of the head is applied.
  void applied(Round round, const Digest& parameters);

 private:
  void enter(const wire::Record& record, const Digest& digest);

  std::optional<wire::Record> head_;
  Digest digest_;
  std::optional<Digest> parameters_;
  std::vector<wire::Member> by_age_;
};

}  // namespace tw::swarm
