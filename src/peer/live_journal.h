// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "monitor/fold/budget.h"
#include "monitor/fold/journal.h"
#include "peer/barrier.h"
#include "train/session/session.h"
#include "world/clock.h"

namespace tw::peer {

/// The journal of a running peer: its own events, and the statuses of others once a second. Decisions of the
/// session are forwarded to `decisions` (may be null). Clock and decisions outlive it. Loop thread only.
class LiveJournal final : public train::SessionObserver {
 public:
  LiveJournal(PeerId self, world::Clock& clock, const train::BudgetOptions& budget,
              train::SessionObserver* decisions);

  /// An event of this peer, as in its log.
  void take(const world::Event& event);

  /// The present status of this peer, for the others.
  wire::Status status();

  /// Whether the others should have the status at once: the loss of a round is known by the words of all its
  /// contributors, and after the last round there is no later word.
  bool is_urgent(const world::Event& event) const;

  const monitor::Journal& journal() const { return journal_; }

  double now_s() const;

  /// Statuses carry it.
  Barrier& barrier() { return barrier_; }

  /// A line for the user where others told of other parameters after the last round of the run than this peer
  /// has; empty: nobody did. The last one to end has heard of all others.
  std::string difference_at_the_end() const;

  /// The budget message that is due, if any; call it once a second.
  std::optional<monitor::BudgetWord> budget_word();

  void on_commit(const wire::Record& record) override;
  void on_applied(const wire::Record& record, const Digest& parameters, bool restored) override;
  void on_status(PeerId from, const wire::Status& status) override;

 private:
  PeerId self_;
  world::Clock& clock_;
  train::SessionObserver* decisions_;
  monitor::Journal journal_;
  monitor::Budget budget_;
  Instant told_at_{};  ///< the last status
  Barrier barrier_;
};

}  // namespace tw::peer
