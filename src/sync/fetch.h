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
#include "base/rarely.h"
#include "base/time.h"
#include "sync/image.h"
#include "sync/partial_object.h"
#include "sync/sources.h"
#include "wire/messages.h"
#include "wire/outbox.h"
#include "wire/rank.h"

namespace tw::sync {

/// A committed round that was missed: its record and its encoded mean, by segment.
struct FetchedMean {
  wire::Record record;
  std::vector<Blob> segments;
};

struct FetchProgress {
  wire::ObjectKind kind{};
  Round round = 0;
  std::uint64_t done = 0;   ///< bytes
  std::uint64_t total = 0;  ///< bytes; 0 before the first offer
  Instant since{};          ///< when the first chunk was asked for
};

/// A peer that sent something unusable, and why.
struct BadSource {
  PeerId peer;
  std::string why;
};

/// The joiner's side: fetches one object at a time, a state or the mean of one round, from all peers with
/// byte-identical offers. A step machine. sync/sources.h decides what is asked of each peer and how long to
/// wait; sync/partial_object.h holds the object and its chunks.
///
/// Choice among different offers: the record that goes before all others (wire/rank.h), then the content that
/// most peers offer. It is made when all have answered, or half a second after the first offer. For half a
/// second more it is repeated as long as no chunk has arrived; later only when no peer offers the chosen
/// object any more.
///
/// Memory, whatever remotes send: one offer per source, and the object, whose size is known before.
class Fetch {
 public:
  struct Options {
    Digest run;
    ChunkLayout state;
    std::vector<ChunkLayout> means{};  ///< by rounds, which take turns; a chunk is an encoded segment
    std::size_t window = 16;  ///< chunk asks under way for each source; below Donor::Options::max_chunk_asks
    Rarely rarely{};
  };

  explicit Fetch(Options options);

  /// Begins to fetch the newest state on offer. Ends with take_state(): while no peer has one, all are asked
  /// again after half a second.
  void want_state(Instant now, const std::vector<PeerId>& sources);

  /// The same for a peer that has the state after record `here`: it does not take that one, and asks again
  /// after half a second if no peer offers another.
  void want_other_state(Instant now, const wire::Record& here, const std::vector<PeerId>& sources);

  /// Begins to fetch the mean of the round that follows this record. Ends with take_mean() or gone().
  void want_mean(Instant now, const wire::Record& after, const std::vector<PeerId>& sources);

  /// From now on takes no state whose record gives way to this one or to the one before it: no peer gives up
  /// a history for a lesser one.
  void keep_to(const wire::Record& record);

  /// The peers to ask from now on; call it when a link has opened or closed, or when one of them no longer
  /// follows the history. Without any source a fetch waits for one.
  void set_sources(Instant now, const std::vector<PeerId>& sources);

  /// The link is closed: what this peer was asked for does not come.
  void on_close(PeerId peer) { sources_.on_close(peer, object_); }

  /// Sources that get chunk asks before others.
  void prefer(std::set<PeerId> peers) { sources_.prefer(std::move(peers)); }

  void on_offer(Instant now, PeerId from, wire::ObjectOffer offer);
  void on_gone(Instant now, PeerId from, const wire::ObjectGone& gone);
  void on_chunk(Instant now, PeerId from, wire::Chunk chunk);

  void step(Instant now);
  Instant next_step() const;

  /// Stops fetching for the time being. The peers that were asked keep what may be needed later.
  void stop();

  /// Nothing more is needed: tells all peers that were asked, and forgets what was under way.
  void finish();

  wire::Outbox take_messages();

  /// The wanted object, once it is complete; then nothing is wanted any more.
  std::optional<StateImage> take_state();
  std::optional<FetchedMean> take_mean();

  /// All sources were asked for the mean, and none has it: only a newer state can help.
  bool gone() const { return stage_ == Stage::gone; }

  /// The peers that owe an answer or chunks.
  std::vector<PeerId> waiting_for() const;

  FetchProgress progress() const;

  /// Number of useful chunks, ever.
  std::uint64_t pieces() const { return sources_.pieces(); }

  /// Bytes of the object under way and of the offers.
  std::uint64_t held_bytes() const;

  /// Refusals since the last call; the same one of the same peer is reported once until finish().
  std::vector<BadSource> take_refusals();

 private:
  enum class Stage { idle, asking, fetching, complete, gone };

  void enter(Stage next);
  const ChunkLayout& layout() const;
  void begin(Instant now, wire::ObjectId wanted, const std::vector<PeerId>& sources);
  void ask(PeerId peer);
  std::string fault_of(const wire::ObjectOffer& offer) const;
  bool gives_way(const wire::Record& record) const;
  void refuse(PeerId peer, std::string why);
  void reconsider(Instant now);
  void decide_without_offers(Instant now);
  void choose(Instant now);
  void ask_for_chunks(Instant now);

  Options options_;
  Stage stage_ = Stage::idle;
  wire::ObjectId wanted_;
  std::optional<wire::Rank> floor_;
  Digest before_floor_;  ///< its parent
  Digest parent_;        ///< of the record whose mean is wanted
  Digest here_;          ///< the record whose state is not wanted; zero: none
  Sources sources_;
  PartialObject object_;
  Instant choose_at_ = kNever;      ///< even if some have not answered
  Instant ask_again_at_ = kNever;   ///< for a state that no peer had
  Instant ask_silent_at_ = kNever;  ///< those who have not answered

  wire::Outbox outbox_;
  std::set<PeerId> told_;  ///< peers that were asked for something: to be told when it is over
  std::vector<BadSource> refusals_;
  std::map<PeerId, std::string> refused_;
};

}  // namespace tw::sync
