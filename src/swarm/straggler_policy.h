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

/// The time that something may take: some multiple of what is expected of it, and a floor for what no
/// expectation covers, such as a pause of the scheduler.
struct Deadline {
  Duration expected{};
  double factor = 1;
  Duration floor{};

  /// The floor, and the multiple after it.
  Duration sum() const;

  /// The floor or the multiple, whichever is longer.
  Duration longer() const;
};

/// How long a peer may be silent on its links. `within`: by its own word it is heard again so soon.
/// `hurried`: a round is overdue.
Duration silence_limit(Duration round_trip, Duration within, bool hurried);

/// From this age of a plan on its round is overdue. The same for every peer.
Duration overdue_after(Duration expected_reduce);

/// From this age of a plan on a peer that owes segments is stalled.
Duration stalled_after(Duration expected_reduce);

/// From this age of a plan on a peer whose vote is missing, while others have the mean, is given up.
Duration vote_missing_after(Duration expected_reduce);

/// A peer that holds microbatches and returns none for so long is hung. `usual`: time of one by its own word;
/// nothing before any was measured.
Duration hung_after(std::optional<Duration> usual);

/// A peer that sends nothing for so long while it owes segments is reported.
Duration owing_after(Duration round_trip);

/// And asked to send its part again after so long, and no sooner once more.
inline constexpr Duration kAskAgainAfter = std::chrono::seconds(8);

/// From this age of a plan on it can be judged who is slow: results lag behind contributions.
Duration slow_is_known_after(Duration expected_reduce);

/// By when this part of what a peer owes, from 0 to 1, should be here: later it is slow.
Duration slow_after(Duration expected_reduce, double part);

/// A joiner that loses ground is not waited for any more once nothing has come to it for so long: restoring a
/// state of 1 GB takes seconds in which nothing comes.
inline constexpr Duration kJoinerIsStill = std::chrono::seconds(20);

/// Nor is one that still loads after so long.
inline constexpr Duration kJoinerIsWaitedFor = std::chrono::minutes(10);

/// How long averaging should take: as `usual`, longer where joiners send too (`senders` to `members` that
/// reduce) or where the lines demand it, which may carry more than was ever seen.
Duration expected_reduce(Duration usual, Duration demanded, std::size_t senders, std::size_t members);

/// A microbatch that a peer returns next, and for how long the leader has waited for it.
struct Awaited {
  PeerId peer;
  Duration waited{};
  std::optional<Duration> usual{};  ///< hung_after()
};

/// Every rule of a leader about a peer that is slow or silent, for one round under one ballot; the rules of
/// each peer are the functions above. It hears
/// stall reports and judges them; what follows is the leader's. It knows neither clock nor socket; one
/// thread.
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

  /// `segments`: of the vector.
  explicit StragglerPolicy(std::uint64_t segments) : segments_(segments) {}

  /// Both peers count. A verdict where the report alone is reason enough.
  std::optional<Verdict> on_report(Instant now, PeerId from, const wire::StallReport& report);

  /// A plan is proposed. again: what was owed under the plan before is due as before.
  void planned(Instant now, bool again);

  /// The peer is gone: nothing said by it or about it stands.
  void forget(PeerId peer);

  /// The peer is out of the plan: nothing said by it stands.
  void forget_words_of(PeerId peer);

  /// What is to be done now about stall reports, one peer at a time.
  std::optional<Verdict> judge(Instant now, const PeerStatus& peers, const Proposer& proposer);

  /// The first of those that are hung. One that is alone waits for itself.
  static std::optional<Verdict> judge_work(const PeerStatus& peers, const std::vector<Awaited>& awaited);

  /// What is kept, in entries of a few words.
  std::size_t notes() const;

 private:
  struct Stalls {
    std::map<PeerId, Instant> unreachable;                       // by suspect: since when
    std::map<wire::StallCause, std::map<PeerId, Instant>> owes;  // kind, by suspect: when last
  };

  /// What one reporter said last of a suspect that is slow.
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
  Instant planned_at_{};                            // the contributions and shares of the present plan
  Instant proposed_at_{};                           // the present plan
};

}  // namespace tw::swarm
