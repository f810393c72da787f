// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "wire/messages.h"
#include "wire/rank.h"

namespace tw::swarm {

/// The chain of decided records as this peer knows it: its newest record (the head), and with which
/// parameters the round after it begins here. A value that knows neither clock nor socket; one thread.
class History {
 public:
  /// The newest record of this peer, if any.
  const std::optional<wire::Record>& head() const { return head_; }

  /// Digest of the head; zero without one.
  const Digest& digest() const { return digest_; }

  /// With which the round after the head begins: nothing while the update of the head is not applied. Without
  /// a head, the parameters from the seed.
  const std::optional<Digest>& parameters() const { return parameters_; }

  /// How far this history goes. It needs a head.
  wire::Rank rank() const;

  /// The round after the head.
  bool is_next(Round round) const { return head_ && round == head_->round + 1; }

  /// A draft or a record of the round after the head, and of no other history.
  bool continues(const wire::Record& record) const;

  enum class News {
    old,    ///< does not go before the head
    next,   ///< decided is what this peer voted for: the record follows the head
    other,  ///< decided is something that is not here: the state has to be taken from others
  };

  /// What a decided record is to this peer, which has a head. `expected`: what its own plan becomes when it
  /// is decided (Acceptor::expected); it is compared member by member, since a mean is the same under more
  /// than one draft.
  News judge(const wire::Record& record, const std::optional<wire::Record>& expected) const;

  /// The parameters from the seed are ready. There is no head.
  void fresh(const Digest& parameters);

  /// The run begins with this record, or the state after it was taken from others. True when it was the head
  /// already: what was said of the round after it is still in the world.
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
};

}  // namespace tw::swarm
