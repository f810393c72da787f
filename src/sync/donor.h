// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/rarely.h"
#include "sync/image.h"
#include "wire/messages.h"
#include "wire/outbox.h"

namespace tw::sync {

/// A member's side of state transfer: offers the state and the means of the rounds after it, hands out
/// chunks. A step machine. It keeps nothing unless some peer syncs: a peer follows from its first ask until
/// it says that it is done or its link closes.
///
/// Memory, whatever remotes send: two images, max_means means, and max_chunk_asks asks per follower.
class Donor {
 public:
  struct Options {
    std::size_t max_means = 8;
    /// Per follower. Beyond it the oldest ask is dropped: a joiner that starts over leaves old asks behind.
    std::size_t max_chunk_asks = 64;
    /// Offers are long: a follower gets at most this many between two signs of progress (a commit, or a chunk
    /// that its link took).
    std::size_t max_offers = 16;
    Rarely rarely{};
  };

  /// Memory of each follower beside its asks.
  static constexpr std::uint64_t kFollowerBytes = 256;

  Donor() : Donor(Options{}) {}

  explicit Donor(Options options) : options_(std::move(options)) {}

  /// head: the last record here; null when this peer has no state itself (then the answer is ObjectGone). A
  /// state is offered at once if the image of just that record is held, or if others fetch both images
  /// and the means after the newer one are here; otherwise after give().
  void on_ask(PeerId from, const wire::ObjectAsk& ask, const wire::Record* head);

  /// Queues a chunk for next_bulk. ObjectGone unless the object is held and was offered to this peer, and the
  /// index exists.
  void on_chunk_ask(PeerId from, const wire::ChunkAsk& ask);

  void on_done(PeerId from);
  void on_close(PeerId peer);

  /// Some peer waits for a state: freeze one and give() it. Stays true until then, so the caller has to
  /// remember that a freeze is under way.
  bool wants_image() const;

  /// Offers the image to all that wait, even if it is older than the newest record. It is dropped with the
  /// last follower. A third image replaces the oldest; peers that fetch that one are told.
  // owners: donor and checkpoint writer
  void give(std::shared_ptr<const StateImage> image);

  /// Call it at every commit, with the encoded mean by segment. Ignored without followers.
  void keep_mean(const wire::Record& record, std::vector<Blob> segments);

  bool has_followers() const { return !followers_.empty(); }

  /// Bytes kept for followers: images, means, and their asks.
  std::uint64_t held_bytes() const;

  wire::Outbox take_messages();

  /// Peers for which next_bulk has something new since the last call.
  std::vector<PeerId> take_wakeups();

  /// next_bulk may have something but was not called: take_wakeups names all its receivers again.
  void wake_followers();

  /// The next chunk for this peer, in the order of its asks.
  std::optional<wire::Message> next_bulk(PeerId to);

 private:
  // owners: donor and checkpoint writer
  using Image = std::shared_ptr<const StateImage>;

  struct Follower {
    bool waiting = false;  ///< for an image that is not frozen yet
    Image image;           ///< the one offered last, one of images_
    std::deque<wire::ChunkAsk> asks;
    std::size_t offers = 0;
  };

  struct Mean {
    wire::Record record;
    std::vector<Blob> segments;
    std::uint64_t bytes = 0;      ///< of the segments
    std::vector<Digest> digests;  ///< of the segments; made for the first peer that asks
  };

  void on_state_ask(PeerId from, Follower& follower, const wire::ObjectAsk& ask, const wire::Record& head);
  bool shares_the_newest(PeerId asking) const;
  void on_mean_ask(PeerId from, Follower& follower, const wire::ObjectAsk& ask);
  void offer_image(PeerId to, Follower& follower);
  void send_gone(PeerId to, wire::ObjectId object);
  void wake(PeerId peer);
  const std::vector<Blob>* chunks_of(const Follower& follower, wire::ObjectId object) const;
  void forget_asks(PeerId peer, Follower& follower, wire::ObjectId object);
  void drop_oldest_image();
  void drop_mean(std::size_t index);
  void release_unused();

  Options options_;
  std::map<PeerId, Follower> followers_;
  std::deque<Image> images_;       ///< oldest first, two at most
  std::uint64_t image_bytes_ = 0;  ///< of each: images differ only in their round
  std::deque<Mean> means_;         ///< by round, oldest first
  wire::Outbox outbox_;
  std::vector<PeerId> wakeups_;
};

}  // namespace tw::sync
