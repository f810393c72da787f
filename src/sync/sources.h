// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/ids.h"
#include "base/rarely.h"
#include "base/time.h"
#include "sync/partial_object.h"
#include "wire/messages.h"
#include "wire/outbox.h"

namespace tw::sync {

/// The peers that one object is fetched from: their answers, the chunks asked of them, and how long to wait
/// for each. Chunks are divided by speed alone: each source has a window of asks under way.
///
/// A source is judged by its silence, not by the age of an ask: a slow link with a full window is no reason
/// to load another one with the same chunks.
///
/// Memory, whatever remotes send: one offer per source, and two windows of chunk numbers.
class Sources {
 public:
  struct Source {
    bool answered = false;
    std::optional<wire::ObjectOffer> offer;  ///< the valid one; none before an offer and after a broken one
    Digest content;                          ///< of the whole offer
    std::uint64_t offer_bytes = 0;           ///< in memory
    std::map<std::uint32_t, Instant> asked;  ///< chunks under way that no other source was asked for
    std::set<std::uint32_t> owed;            ///< asked for and given up; they come if the link is merely slow
    bool has_sent = false;                   ///< a chunk of this object
    int times_given_up = 0;                  ///< since its last chunk
    Instant given_up_last{};
    Instant quiet_since{};                 ///< last chunk, or first ask after none was under way
    std::uint64_t pieces_then = 0;         ///< of all sources, at quiet_since
    std::optional<Instant> avoided_until;  ///< since it did not answer in time

    bool serves(const PartialObject& object) const { return offer && object.is(content); }
  };

  /// window: chunk asks under way per source.
  Sources(std::size_t window, Rarely rarely);

  /// Forgets all sources and the time that a chunk takes, but not how many chunks may still come.
  void clear();

  /// From now on only these peers are sources. Returns the new ones, which have to be asked for the object.
  /// What the others were asked for still comes.
  std::vector<PeerId> set(const std::vector<PeerId>& peers, PartialObject& object);

  /// The link is closed: nothing more comes from this peer.
  void on_close(PeerId peer, PartialObject& object);

  /// Treats all sources as new and returns them. For an object that has not begun.
  std::vector<PeerId> start_over();

  /// These sources are asked first, the others for what these have no window for: these are likelier to stay
  /// to the end.
  void prefer(std::set<PeerId> peers) { preferred_ = std::move(peers); }

  /// Null when this peer is no source.
  Source* find(PeerId peer);

  /// This source offers the object.
  static void keep_offer(Source& source, wire::ObjectOffer offer);

  /// This source has no offer any more. The chunks asked of it are free.
  void drop_offer(PeerId peer, PartialObject& object);

  bool all_answered() const;  ///< false without any source
  bool anybody_offers() const;
  bool anybody_serves(const PartialObject& object) const;

  /// A source with the best offer: of the record that goes before all others (wire/rank.h), then the one that
  /// most peers offer byte for byte alike. Requires an offer.
  const Source& best() const;

  /// Another object is fetched from now on: drops asks, owed chunks and bad marks of all sources.
  void forget_asks();

  /// Fills the window of each source that serves the object with asks for free chunks. Near the end, idle
  /// sources are asked for what the slowest one has not sent yet.
  wire::Outbox ask_for_chunks(Instant now, PartialObject& object);

  /// A right chunk came from a serving source. is_new: it was not here before.
  void on_chunk(Instant now, PeerId from, std::uint32_t index, bool is_new);

  /// A useless chunk came. If this peer was asked for it earlier, it shows that the peer's link is busy.
  /// False if it was not asked: then it shows nothing.
  bool on_useless_chunk(Instant now, PeerId from);

  /// Gives up sources that were silent for too long, for a while: others are asked for their chunks.
  void give_up_on_quiet(Instant now, PartialObject& object);

  /// When the next source is given up, or is not avoided any more.
  Instant next_step() const;

  /// The peers that have not answered yet, and those that chunks are asked of.
  std::vector<PeerId> unanswered() const;
  std::vector<PeerId> sending() const;

  /// Number of useful chunks, ever.
  std::uint64_t pieces() const { return pieces_; }

  /// Bytes of all offers.
  std::uint64_t held_bytes() const;

 private:
  void ask_some(Instant now, PartialObject& object, bool preferred, wire::Outbox& asks);
  void ask_for_chunk(Instant now, Source& source, std::uint32_t index);
  std::vector<std::uint32_t> relieve_slowest(Instant now, PeerId idle_peer);
  void expect_useless(PeerId from, std::size_t chunks);
  void give_up(Instant now, Source& source, PartialObject& object);
  Duration chunk_patience() const;
  Duration patience_with(const Source& source) const;
  Instant given_up_at(const Source& source) const;
  static void release_asks(Source& source, PartialObject& object);

  std::size_t window_;
  Rarely rarely_;
  std::map<PeerId, Source> sources_;
  std::set<PeerId> preferred_;
  std::map<PeerId, std::size_t>
      useless_;                      ///< chunks that a peer was asked for and that are not wanted of it now
  std::uint64_t pieces_ = 0;         ///< of all objects
  std::optional<Duration> typical_;  ///< from ask to chunk
  Instant last_chunk_{};             ///< from any asked source, of any object
};

}  // namespace tw::sync
