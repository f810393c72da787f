// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "base/rarely.h"
#include "sync/donor.h"
#include "sync/fetch.h"
#include "sync/ground.h"
#include "wire/rank.h"

namespace tw::sync {

/// The record at which this peer's state stands, how the peer catches up with others, and what others get of
/// the state. A step machine: it says what has to be put in place or copied, and is told when that is done.
/// It never sees a parameter. Loop thread only.
class Replica {
 public:
  enum class State {
    empty,      ///< no state is here
    loading,    ///< a checkpoint is read
    resuming,   ///< a checkpoint is put in place
    settling,   ///< others are ahead: own updates are finished before their state is asked for
    fetching,   ///< a state, or a missed mean, is fetched
    restoring,  ///< a fetched state is put in place
    replaying,  ///< a fetched mean is applied
    current,    ///< at the head of the history, as far as is known here
  };

  struct Options {
    Fetch::Options fetch;
    Round digest_every = 1;  ///< rounds between two comparisons of the parameters
    Rarely rarely{};
  };

  /// A record, and the digest of the parameters after it: zero while its update is computed.
  struct Tip {
    wire::Record record;
    Digest parameters;
  };

  /// The others, as known at the time of a call.
  struct Others {
    std::vector<PeerId> sources;  ///< they follow the history, and are linked
    wire::Rank best;              ///< the history that goes before all others
    std::set<PeerId> anchors{};   ///< sources that are asked before others
  };

  explicit Replica(const Options& options);

  State state() const { return state_; }

  /// True from when others are ahead, or a checkpoint is put in place, until this peer stands at the head.
  bool is_catching_up() const { return state_ >= State::resuming && state_ <= State::replaying; }

  /// The newest state here; none while it is empty.
  const std::optional<Tip>& tip() const { return tip_; }

  /// The tip belongs to a history that has begun.
  bool has_history() const { return tip_ && tip_->record.run == options_.fetch.run; }

  // ---- own progress

  /// Reads a checkpoint, if there is no state yet.
  void load() { go_to(State::loading); }

  /// No checkpoint is put in place.
  void loaded_nothing();

  /// A checkpoint is being put in place, until come_to().
  void resume(Instant now);

  /// The parameters from the seed are ready.
  void begin(const Digest& parameters);

  /// The history of a peer with the parameters from the seed begins. False if it had begun before.
  bool found(const wire::Record& genesis);

  /// A round is decided that this peer took part in; `mean`: by segment. Only while it is current.
  void commit(const wire::Record& record, const std::vector<Blob>& mean);

  /// The update of this round is done.
  void applied(Round round, const Digest& parameters);

  // ---- catching up

  enum class Behind {
    rounds,   ///< others decided rounds that are not here
    differs,  ///< the parameters here differ from theirs: means alone do not help
  };

  /// Others are ahead. settled: no own update is under way.
  void catch_up(Instant now, Behind behind, bool settled, const Others& others);

  /// After this round the parameters differed from those of the others, though the mean was the same. Returns
  /// the rounds once this has happened so often within so few rounds that it will happen again.
  std::optional<std::vector<Round>> differed(Round round);

  static constexpr std::size_t kMostDifferences = 3;
  static constexpr Round kWithin = 10;  ///< comparisons of the parameters

  /// The last own update is done. Requires State::settling.
  void settled(Instant now, const Others& others);

  struct TakeState {
    StateImage image;
    Duration offer{};     ///< time until it was offered
    Duration transfer{};  ///< time from the offer on
  };

  struct TakeMean {
    FetchedMean mean;
  };

  /// The state here is the newest one: go on from it.
  struct GoOn {};

  using Next = std::variant<std::monostate, TakeState, TakeMean, GoOn>;

  /// Call it whenever something came while this peer catches up.
  Next next(Instant now, const Others& others);

  /// The fetched object cannot be used.
  void take_again(Instant now, const Others& others);

  /// The state after this record is here. True at the head of the history: go on from it. Otherwise the
  /// missing means are fetched.
  bool come_to(Instant now, const Tip& tip, const Others& others);

  /// This peer is a member: it needs nothing more of others. May be called again.
  void joined();

  /// Time when it began to catch up.
  Instant since() const { return since_; }

  wire::CatchingUp progress_of_catching_up() const { return {ground_.lost(), fetch_.pieces()}; }

  /// True if it lost ground so often and for so long, though the others waited, that it will never be a
  /// member. Time until a call with lacks_link does not count: no bandwidth helps without that link.
  bool is_too_slow(Instant now, bool lacks_link) {
    if (lacks_link) struggles_since_ = now;
    return ground_.lost() >= kLostForGood && now - struggles_since_ >= kStrugglesAtMost;
  }

  static constexpr std::uint32_t kLostForGood = 100;
  /// The others wait for it as long (swarm/straggler_policy.h). A hundred short rounds say nothing.
  static constexpr Duration kStrugglesAtMost = std::chrono::minutes(10);

  FetchProgress progress() const { return fetch_.progress(); }

  std::vector<PeerId> waiting_for() const { return fetch_.waiting_for(); }

  // ---- what others get

  /// The record whose state has to be copied for others, once until give().
  std::optional<wire::Record> wants_image();

  /// null: the state could not be copied.
  // owners: Donor::give
  void give(std::shared_ptr<const StateImage> image);

  /// lines_are_taken: segments, which go before chunks, need the bandwidth.
  std::optional<wire::Message> next_chunk(PeerId to, bool lines_are_taken);

  /// Time when others last fetched something here.
  Instant asked_at() const { return asked_at_; }

  /// A chunk was held back only because the bandwidth was taken.
  bool holds_chunks() const { return holds_chunks_; }

  void let_chunks_go();

  // ---- messages and time

  /// False, without effect, for a message that is not about states.
  bool on_message(Instant now, PeerId from, wire::Message& message);

  void on_close(PeerId peer) {
    donor_.on_close(peer);
    fetch_.on_close(peer);
  }

  void step(Instant now) { fetch_.step(now); }

  Instant next_step() const { return fetch_.next_step(); }

  wire::Outbox take_messages();

  /// Peers for which next_chunk has something since the last call.
  std::vector<PeerId> take_wakeups() { return donor_.take_wakeups(); }

  std::vector<BadSource> take_refusals() { return fetch_.take_refusals(); }

  std::uint64_t held_bytes() const { return donor_.held_bytes() + fetch_.held_bytes(); }

 private:
  /// The basis of the fetch under way.
  enum class Base {
    own,       ///< the state here before it fell behind
    differs,   ///< nothing: the parameters here differ from those of the others
    restored,  ///< a state or mean that was just put in place
    rejected,  ///< the same, but the means after it are gone: the same state is of no use
  };

  void go_to(State next);
  void begin_to_fetch(Instant now, const Others& others);
  void fetch_state_again(Instant now, const Others& others);

  Options options_;
  State state_ = State::empty;
  std::optional<Tip> tip_;
  Fetch fetch_;
  Donor donor_;
  Ground ground_;
  Base base_ = Base::own;
  Instant since_{};
  Instant struggles_since_{};
  std::vector<Round> differed_;
  Instant asked_at_{};
  bool holds_chunks_ = false;
  bool is_copied_ = false;    ///< for others
  bool owes_thanks_ = false;  ///< others keep what it may need, until it sends SyncDone
};

}  // namespace tw::sync
