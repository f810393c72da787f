// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/range_set.h"
#include "base/time.h"
#include "swarm/ballots/proposer.h"
#include "swarm/members/peer_status.h"
#include "wire/messages.h"

namespace tw::swarm {

/// The time that something may take: a multiple of its expected time, and a floor for what no expectation
/// covers, such as a pause of the scheduler.
struct Deadline {
  Duration expected{};
  double factor = 1;
  Duration floor{};

  /// Floor plus multiple.
  Duration sum() const;

  /// Floor or multiple, whichever is longer.
  Duration longer() const;
};

/// Limit of a peer's silence on its links. `within`: time to its next message, as it announced. `hurried`: a
/// round is overdue.
Duration silence_limit(Duration round_trip, Duration within, bool hurried);

/// Age of a plan from which its round is overdue; the same at every peer.
Duration overdue_after(Duration expected_reduce);

/// Age of a plan from which a peer that owes contributions is stalled. One that owes results is so a second
/// later: it may wait itself, and reports of that may still come.
Duration stalled_after(Duration expected_reduce);

/// Age of a plan from which a peer without a vote is given up, while others have the mean.
Duration vote_missing_after(Duration expected_reduce);

/// A peer that holds microbatches and returns none for this long is hung. `usual`: time of one, as the peer
/// reports it; empty before the first measurement.
Duration hung_after(std::optional<Duration> usual);

/// A peer that owes segments and sends nothing for this long is reported.
Duration owing_after(Duration round_trip);

/// While it owes, it is reported again after this long.
inline constexpr Duration kReportAgain = std::chrono::milliseconds(500);

/// After this long it is asked to send its part again; also the least time between two such requests.
inline constexpr Duration kAskAgainAfter = std::chrono::seconds(8);

/// Age of a plan from which slow peers can be told apart: results lag behind contributions.
Duration slow_is_known_after(Duration expected_reduce);

/// Age of a plan at which this part (0 to 1) of what a peer owes should be here; a later peer is slow.
Duration slow_after(Duration expected_reduce, double part);

/// The leader stops waiting for a joiner that loses ground when nothing has reached it for this long. While a
/// joiner restores a state of 1 GB, nothing arrives for seconds.
inline constexpr Duration kJoinerIsStill = std::chrono::seconds(20);

/// The leader stops waiting for a joiner that still loads after this long.
inline constexpr Duration kJoinerIsWaitedFor = std::chrono::minutes(10);

/// Expected time of averaging: `usual`, longer if joiners send too (`senders` to `members` that reduce) or if
/// the bandwidths demand it. A bandwidth may be higher than ever measured.
Duration expected_reduce(Duration usual, Duration demanded, std::size_t senders, std::size_t members,
                         bool with_joiner = false);

/// The next microbatch that a peer has to return, and how long the leader has waited for it.
struct Awaited {
  PeerId peer;
  Duration waited{};
  std::optional<Duration> usual{};  ///< hung_after()
};

/// All rules of a leader about slow or silent peers, for one round under one ballot; the rules of every peer
/// are the functions above. It hears stall reports and judges them; the leader acts. It knows neither clock
/// nor socket; one thread.
class StragglerPolicy {
 public:
  enum class Sentence : std::uint8_t {
    exclude,  ///< out of this round
    refuse,   ///< what it computed does not count; it gets the mean and votes
    replace,  ///< it does not serve: others that have the mean serve its segments
    relieve,  ///< others reduce `segments` of its share; all else stays with it
  };

  struct Verdict {
    Sentence sentence = Sentence::exclude;
    PeerId peer;
    std::string why{};
    RangeSet segments{};
  };

  /// `segments`: number of segments of the vector.
  explicit StragglerPolicy(std::uint64_t segments) : segments_(segments) {}

  /// Both peers must count. Returns a verdict if the report alone is reason enough.
  std::optional<Verdict> on_report(Instant now, PeerId from, const wire::StallReport& report);

  /// A plan is proposed. again: what was owed under the previous plan keeps its due time.
  void planned(Instant now, bool again);

  /// Segments of a slow peer have just moved to others, which need time for them: what is owed is due as late
  /// as if the plan were made now. Only the first kReliefs of a plan count, so that a round still ends.
  void relieved(Instant now);

  static constexpr int kReliefs = 2;

  /// The peer is gone: forgets what it reported and what was reported about it.
  void forget(PeerId peer);

  /// The peer is out of the plan: forgets what it reported.
  void forget_words_of(PeerId peer);

  /// The verdict that is due now about stall reports, one peer at a time.
  std::optional<Verdict> judge(Instant now, const PeerStatus& peers, const Proposer& proposer);

  /// The first hung peer. A lone peer waits for itself.
  static std::optional<Verdict> judge_work(const PeerStatus& peers, const std::vector<Awaited>& awaited);

  /// Size of what is kept, in entries of a few machine words.
  std::size_t notes() const;

 private:
  struct Stalls {
    std::map<PeerId, Instant> unreachable;                       // by suspect: since when
    std::map<wire::StallCause, std::map<PeerId, Instant>> owes;  // kind, by suspect: when last
  };

  /// The latest report of one peer about a slow suspect.
  struct Slow {
    Instant since{};
    Instant last{};
    bool contributes = false;  ///< slow_contribution
    RangeSet missing;
  };

  void note_slow(Instant now, PeerId from, const wire::StallReport& report);
  std::optional<PeerId> unreachable(Instant now, const PeerStatus& peers) const;
  std::optional<PeerId> stalled(Instant now, const PeerStatus& peers, const Proposer& proposer) const;
  std::optional<PeerId> missing_vote(Instant now, const PeerStatus& peers, const Proposer& proposer) const;
  std::optional<PeerId> slowest(Instant now, const PeerStatus& peers) const;
  RangeSet lacking_of(PeerId slow, const std::vector<wire::Share>& shares) const;

  std::uint64_t segments_;
  std::map<PeerId, Stalls> stalls_;                 // by reporter
  std::map<std::pair<PeerId, PeerId>, Slow> slow_;  // by suspect and reporter
  Instant planned_at_{};                            // when the plan's contributions and shares were set
  int reliefs_ = 0;                                 // of this plan
  Instant proposed_at_{};                           // when the present plan was proposed
};

}  // namespace tw::swarm
