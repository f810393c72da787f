// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "monitor/board/board.h"
#include "monitor/fold/lane.h"
#include "monitor/fold/seen.h"
#include "wire/status.h"

namespace tw::monitor {

/// The hours of a peer's processes, one after the other, from the first
/// sign of a process to its stop, or to its last sign. They have no start-up and shutdown of a machine.
class Uptime {
 public:
  /// starts, stops: this is the first, or the last, sign of its process.
  void note(double at_s, bool starts, bool stops);

  /// Sets the hours that the peer itself reported.
  void set_hours(double hours);

  double hours() const { return (ended_s_ + (runs_ ? last_s_ - begun_s_ : 0)) / 3600; }

 private:
  void end();

  double ended_s_ = 0;  ///< sum of the processes that ended
  double begun_s_ = 0, last_s_ = 0;
  bool runs_ = false;
};

/// Contributions of a peer to committed rounds.
class Contributions {
 public:
  void add(Round round, std::uint64_t samples, double at_s);

  /// A record has samples of the peer. They count once the peer is gone, where it told nothing of the round.
  void credit(Round round, std::uint64_t samples);

  /// Sets the sums that the peer itself reported after this round.
  void set(Round last, std::uint64_t rounds, std::uint64_t samples, double samples_per_s);

  /// Rounds after this one are repeated: the first time does not count.
  void rewind(Round to);

  /// is_gone: with the credited ones.
  std::uint64_t rounds(bool is_gone) const;
  std::uint64_t samples(bool is_gone) const;

  /// Over the last rounds; 0 before there are two of them.
  double samples_per_s() const;

 private:
  struct One {
    Round round;
    std::uint64_t samples;
    double at_s;
  };

  void tells(Round round);

  struct Credit {
    Round round;  ///< the last of these
    std::uint64_t samples, rounds;
  };

  static constexpr std::size_t kMostKept = 1024;  ///< for rewind
  static constexpr std::size_t kSpeedRounds = 10;

  std::deque<One> last_;
  Round told_ = 0;              ///< the last round that the peer itself told of
  std::deque<Credit> credits_;  ///< of later ones
  std::uint64_t rounds_ = 0, samples_ = 0;
  std::optional<double> told_per_s_;
};

/// Membership of a peer, as others see it.
struct Standing {
  std::optional<Round> first_round, lost_round;
  std::optional<Round> resumed;  ///< its state is that of a checkpoint of this round, without later updates
  double resumed_s = 0;          ///< when it took that state
  double started_s = 0;          ///< its last process

  /// Rounds of a history beside that of the run: from the first to the last one that the peer decided.
  struct Apart {
    Round first = 0, last = 0;
  };

  std::optional<Apart> alone;    ///< it is the only member, without a majority of those before
  Contributions before_alone;    ///< to rounds before these
  std::optional<Apart> apart;    ///< the run dropped them (HeldHistory), and the peer decides further ones
  std::optional<Apart> gave_up;  ///< for the state of others, since it computed last
  std::optional<double> stopped_s;
  bool killed = false;
  bool left = false;        ///< it left by itself, according to a record
  bool superseded = false;  ///< others resumed from a checkpoint without it

  /// Peers close their links when a run ends, and one that looks a moment longer may take that for a loss.
  bool ended_itself(Round lost, Round last) const { return stopped_s && !killed && lost > last; }
};

/// The stages of a peer's rounds, from its own events.
class Stages {
 public:
  void take(const Seen& seen);

  /// Its part of the last rounds, the newest last; their times of calculation and communication where it had
  /// a part. called_s: since when it only averaged.
  std::vector<BoardRound> rounds(double now_s) const;

 private:
  void take_commit(const Seen& seen, const event::Commit& commit);
  void take_lost(const Seen& seen);

  std::deque<BoardRound> rounds_;
  std::map<Round, std::vector<LeftOut>> left_out_;  ///< of rounds that are not committed yet
  Round begun_ = 0;                                 ///< round that began last
  double begun_s_ = 0;
};

/// One peer, from its own events and those of others.
class PeerTrack {
 public:
  /// lane_rounds: that its lane keeps.
  explicit PeerTrack(PeerId peer, std::size_t lane_rounds = Board::kMostLaneRounds)
      : lane(peer, lane_rounds) {
    shown_.peer = peer;
  }

  /// An event of its own.
  void take(const Seen& seen);

  /// A status of this peer; its times are by the clock here.
  void take(const wire::Status& status, double at_s);

  /// An event of its own, about a round that the run dropped.
  void take_dropped(const Seen& seen);

  /// It decides rounds in another history than the run.
  bool is_apart(double now_s) const;

  /// Others count it out, or it has gone.
  void gone(PeerState how, const std::string& why, Round round, double at_s);

  /// Its process goes on from this round, whatever one before it had done.
  void stands_at(Round round);

  /// It takes part again: its lane resumes with the state that it reported.
  void back(Round round, double at_s) { lane.enter(doing_, round, at_s); }

  /// Others count it out, or it has gone.
  bool is_gone() const;

  BoardPeer board(double now_s) const;

  /// Nothing: it has told of something else since, or is gone.
  const std::optional<BoardWait>& last_wait() const { return shown_.wait; }

  /// When it last told of itself.
  double heard_s() const { return shown_.heard_s; }

  const std::string& digest() const { return shown_.digest; }

  Round digest_round() const { return shown_.digest_round; }

  Lane lane;
  Uptime uptime;
  Stages stages;
  Contributions contributions;
  Standing standing;

 private:
  void take_start(const Seen& seen, const event::Start& start);
  void take_use(const event::Use& use);
  void take_bytes(const event::Count& sent, const event::Count& received);
  void take_bandwidth(const event::Bandwidth& bandwidth);
  void take_notice(const Seen& seen, const event::Notice& told);
  void take_wait(const Seen& seen, const event::Wait& told);
  void take_call(const Seen& seen);
  void take_commit(const Seen& seen, const event::Commit& commit);
  void begin_averaging(double at_s);
  void averages_since(Round round, double at_s);
  void take_restored(const Seen& seen, const event::Restore& restored);
  void take_parameters(const Seen& seen, const std::string& digest, double took_s);
  void enter(PeerState state, const Seen& seen);
  void take_stages(const BoardRound& last);

  PeerState doing_ = PeerState::computing;  ///< as it last reported, also while others count it as lost
  BoardPeer shown_;                         ///< as far as events tell it
  BoardUsage ended_;                        ///< of its earlier processes
  double wait_ends_s_ = 0;                  ///< end of a wait without a further report
  Round told_round_ = 0;                    ///< last round whose stages it reported
  Round called_ = 0;                        ///< last round whose call it reported
  bool leaves_ = false;
};

}  // namespace tw::monitor
