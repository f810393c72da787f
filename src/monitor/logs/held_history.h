// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "monitor/logs/log_source.h"

namespace tw::monitor {

/// Rounds of a history that the run does not hold any more: a side without a majority went on alone and gave
/// its history up, or a run was resumed from an earlier checkpoint.
struct DroppedRounds {
  Round first = 0, last = 0;
  std::uint64_t rounds = 0, samples = 0;
  std::vector<PeerId> peers;  ///< that committed them, as far as their logs are here
  Instant begun, ended;       ///< of the first and the last of them
  std::int64_t begun_unix_nanos = 0, ended_unix_nanos = 0;
  std::map<PeerId, Duration> spent;  ///< by each of the peers on them
  std::optional<double> usd;         ///< for that time, by the prices that are known (tell_cost)
};

/// "rounds 186 to 995 were dropped (51840 samples of peer 3)"
std::string to_string(const DroppedRounds& dropped);

/// Which of the logged records the run holds in the end. A record is told by its digest: two histories have
/// rounds of the same number. Logs that name no records have one history.
///
/// The last record of each peer is the end of a history. One that began anew after the last word of another
/// one goes before it; otherwise the one with more samples decided by a majority does, as where peers with
/// two histories meet (wire/rank.h).
class HeldHistory {
 public:
  /// Goes through the logs several times. Errors: of LogSource, or that it gave other entries than before.
  static Result<HeldHistory> of(const LogSource& logs);

  /// This entry (its number in the order of LogSource) is about a round of a history that was dropped, or
  /// about the loss of a peer that had its part in that round and went on. One that was cut off says so of
  /// those whom it does not hear.
  bool drops(std::size_t entry) const { return entry < dropped_.size() && dropped_[entry]; }

  /// The last record of this peer is of a history that was dropped.
  bool is_beside(PeerId peer) const { return beside_.contains(peer); }

  /// As above, of any peer.
  bool is_parted() const { return !beside_.empty(); }

  /// The same as drops() of an entry that was written since, as long as no peer takes another history.
  bool drops_next(const LogEntry& entry) const;

  struct Held {
    Round round = 0;
    std::string record;  ///< its digest
  };

  /// The records with a commit that the run holds, from the first to the last.
  const std::vector<Held>& records() const { return records_; }

  /// By the time of their beginning.
  const std::vector<DroppedRounds>& dropped_rounds() const { return dropped_rounds_; }

 private:
  struct Node {
    Round round = 0;
    std::string parent;
    double samples_total = 0, majority_samples = 0;
    double own_samples = 0;  ///< sum of what the logged peers say of themselves
    bool begins = false;     ///< a history began anew with it
    Instant first, last;     ///< that any log has it
    bool is_committed = false;
  };

  struct End {
    std::string record;
    Instant begun;  ///< its last beginning
    Instant last;
  };

  /// What decides whether an entry is about a dropped round.
  struct Mark {
    std::size_t entry = 0;
    PeerId writer;
    std::optional<PeerId> peer;
    Round round = 0;
    const std::string* record = nullptr;  ///< a key of nodes_; nothing: the entry tells none
    world::Phase phase{};
    bool contributes = false;
  };

  HeldHistory() = default;

  Status gather(const LogSource& logs);
  Node& note(const std::string& record, const LogEntry& entry, const std::string& parent);
  std::optional<std::string> find_tip() const;
  End end_of(const std::string& record) const;
  bool goes_before(const End& one, const End& other) const;
  bool follows(const std::string& record, const std::string& earlier) const;
  void hold(const std::string& tip);
  bool is_dropped(const std::string& record) const;
  bool drops_any() const;
  Result<std::vector<Mark>> marks_in(const LogSource& logs) const;
  void mark(const std::vector<Mark>& marks);
  void mark_false_losses(const std::vector<Mark>& marks);
  double samples_of(const Node& node) const;
  Status sum_up_dropped(const LogSource& logs);

  std::size_t entries_ = 0, losses_ = 0;  ///< of the logs
  std::map<std::string, Node> nodes_;     ///< by the record's digest
  std::map<PeerId, std::string> tips_;    ///< the last record of each peer
  std::multimap<Round, std::string> held_;
  std::vector<bool> dropped_;
  std::set<PeerId> beside_;
  std::vector<Held> records_;
  std::vector<DroppedRounds> dropped_rounds_;
};

}  // namespace tw::monitor
