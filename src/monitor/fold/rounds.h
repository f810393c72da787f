// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "monitor/board/board.h"
#include "monitor/fold/seen.h"
#include "wire/status.h"

namespace tw::monitor {

/// The rounds of a run: times, samples, contributors and digests of the parameters.
class Rounds {
 public:
  /// most: that are kept, the newest ones.
  explicit Rounds(std::size_t most = Board::kMostRounds) : most_(most) {}

  /// from_lost: others count its writer out.
  void take(const Seen& seen, bool from_lost);

  /// A peer's part of the last rounds, and its parameters.
  void take(PeerId from, const wire::Status& status);

  /// Rounds after this one are repeated: the first time does not count.
  void rewind(Round to);

  /// Oldest first.
  std::vector<BoardRound> board() const;

  /// When the first round ever began, also if it is kept no more; 0: none.
  double begun_s() const;

  /// Last committed; 0: none.
  Round last() const { return last_; }

  /// Sum over the whole run, from its last record, so a log that begins later has it, too.
  std::uint64_t samples() const;

  /// The loss of the newest batch that all its contributors have told theirs of.
  std::optional<double> loss() const;

  /// Share of averaging, over so many last rounds, in which a peer computed. Nothing: none was hidden by the
  /// mode of the run.
  std::optional<double> hidden(std::size_t rounds) const;

  /// The committed rounds that speed() is over, newest first, and the one before them: theirs begins at its
  /// commit.
  std::vector<const BoardRound*> recent() const;

  /// Speed, granularity and hidden averaging over the last rounds; goodput is left open.
  BoardSpeed speed() const;

  /// All peers that applied a round have the same parameters. Nothing: none was applied.
  std::optional<bool> identical() const;

  /// The first committer of the round had this record.
  bool holds(Round round, const std::string& record) const;

  /// How many commits had another record than the first one of their round.
  std::uint64_t forks() const { return forks_; }

  /// "after round 4, peer 1 has 0a and peer 2 has 0b": the first parameters that ever differed, also if their
  /// peer fetched the state again; empty: none did.
  std::string difference() const;

  bool complete() const { return complete_; }

 private:
  struct Parameters {
    PeerId peer;  ///< that told them first
    std::string digest;
  };

  /// Averaging of a peer, and the part of it in which it computed for the next round.
  struct Hidden {
    double hidden_s = 0, comm_s = 0;
  };

  struct Track {
    BoardRound shown;
    std::uint64_t own_samples = 0;  ///< sum of the peers' own reports
    std::optional<double> bound_s;  ///< as its leader computed
    std::optional<Hidden> hidden;   ///< of the peer with the least comm_s
    double loss_sum = 0;
    std::uint64_t loss_samples = 0;
    std::map<std::string, Parameters> digests;  ///< of the parameters after it, by record
    std::string record;                         ///< that its first committer had; empty: not known
    std::set<PeerId> committed_by;              ///< and not given up since
  };

  static constexpr std::size_t kSpeedRounds = 10;

  Track& track(Round round);

  /// Samples of the round's batch; nothing: the sum before it is not known.
  std::optional<std::uint64_t> batch_of(const Track& track) const;

  bool is_known(Round round) const { return round > 0 && tracks_.contains(round); }

  void take_part(PeerId from, const BoardRound& part);
  void take_call(const Seen& seen, const event::Call& call);
  void take_commit(const Seen& seen, const event::Commit& commit);
  void take_digest(PeerId peer, Round round, const std::string& record, const std::string& digest);
  void take_told_digest(PeerId peer, Round round, const std::string& digest);
  void falls_behind(PeerId peer);
  void gives_up(PeerId peer, Round after);
  void take_up_again(Track& round);
  static void take_hidden(Track& round, const event::Commit& commit);
  static void take_times(Track& round, std::optional<double> calc_s, std::optional<double> comm_s);
  void take_loss(Track& round, double loss, std::uint64_t samples);
  void take_lost(Round round, PeerId peer, const std::string& why);

  std::size_t most_;
  std::map<Round, Track> tracks_;
  /// Rounds whose only committer was started again, as far as that is known by then: the others may commit
  /// the same record later, and the part of the former process is known from nobody else.
  std::map<Round, Track> given_up_;
  std::map<PeerId, Round> told_;  ///< the last round of which a peer told its part
  Round last_ = 0;
  double begun_s_ = 0;  ///< of the first round, once it is kept no more

  struct Difference {
    Round round = 0;
    Parameters known, came;
  };

  void differ(const Difference& difference);

  std::optional<Difference> differing_;  ///< the first one of a peer that has not fetched the state again
  std::optional<Difference> differed_;   ///< the first one
  std::uint64_t forks_ = 0;
  bool applied_ = false;
  bool complete_ = false;
  bool knows_losses_ = false;  ///< some peer told one: programs need not, and then there is none to look for
};

}  // namespace tw::monitor
