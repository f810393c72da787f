// SPDX-License-Identifier: Apache-2.0
#include "sync/donor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tw::sync {
namespace {

constexpr std::size_t kMaxImages = 2;

wire::ObjectId id_of(const StateImage& image) { return {wire::ObjectKind::state, image.record.round}; }

}  // namespace

void Donor::on_ask(PeerId from, const wire::ObjectAsk& ask, const wire::Record* head) {
  if (head == nullptr) {
    send_gone(from, ask.object);
    return;
  }
  Follower& follower = followers_[from];
  if (follower.offers >= options_.max_offers) {
    send_gone(from, ask.object);
  } else if (ask.object.kind == wire::ObjectKind::state) {
    on_state_ask(from, follower, ask, *head);
  } else {
    on_mean_ask(from, follower, ask);
  }
}

void Donor::on_state_ask(PeerId from, Follower& follower, const wire::ObjectAsk& ask,
                         const wire::Record& head) {
  // A follower that asks again starts over: its earlier asks are obsolete.
  std::erase_if(follower.asks,
                [&](const wire::ChunkAsk& queued) { return queued.object.kind == ask.object.kind; });
  const bool is_head = !images_.empty() && images_.back()->record == head;
  if (is_head || shares_the_newest(from)) {
    offer_image(from, follower);
    release_unused();
  } else {
    follower.waiting = true;
  }
}

// A third image would replace the oldest. On a thin link with short rounds, several joiners would so take the
// state from each other for ever, and none would get it whole. An image without the means after it helps
// nobody.
bool Donor::shares_the_newest(PeerId asking) const {
  const auto fetched = [&](const Image& image) {
    return std::ranges::any_of(followers_,
                               [&](const auto& f) { return f.first != asking && f.second.image == image; });
  };
  if (images_.size() < kMaxImages || !std::ranges::all_of(images_, fetched)) return false;
  const wire::Record& record = images_.back()->record;
  return std::ranges::any_of(
      means_, [after = digest_of(record)](const Mean& mean) { return mean.record.parent == after; });
}

void Donor::on_mean_ask(PeerId from, Follower& follower, const wire::ObjectAsk& ask) {
  // It has the state.
  follower.waiting = false;
  follower.image = nullptr;
  std::erase_if(follower.asks,
                [](const wire::ChunkAsk& queued) { return queued.object.kind == wire::ObjectKind::state; });
  release_unused();
  const auto mean = std::find_if(means_.begin(), means_.end(),
                                 [&](const Mean& m) { return m.record.round == ask.object.round; });
  if (mean == means_.end()) {
    send_gone(from, ask.object);
    return;
  }
  if (mean->digests.empty()) {
    for (const Blob& segment : mean->segments) mean->digests.push_back(digest_of(segment.bytes()));
  }
  wire::ObjectOffer offer{ask.object, mean->record, mean->record.mean, mean->bytes, {}};
  offer.chunks = mean->digests;
  ++follower.offers;
  outbox_.push_back({from, std::move(offer)});
}

void Donor::offer_image(PeerId to, Follower& follower) {
  TW_CHECK(!images_.empty());
  const Image& image = images_.back();
  const Image before = std::exchange(follower.image, image);
  if (before && before != image) forget_asks(to, follower, id_of(*before));
  follower.waiting = false;
  ++follower.offers;
  outbox_.push_back({to, wire::ObjectOffer{id_of(*image), image->record, image->parameters, image->bytes(),
                                           image->digests}});
}

void Donor::send_gone(PeerId to, wire::ObjectId object) { outbox_.push_back({to, wire::ObjectGone{object}}); }

const std::vector<Blob>* Donor::chunks_of(const Follower& follower, wire::ObjectId object) const {
  if (object.kind == wire::ObjectKind::state) {
    return follower.image && id_of(*follower.image) == object ? &follower.image->chunks : nullptr;
  }
  const auto mean = std::find_if(means_.begin(), means_.end(),
                                 [&](const Mean& m) { return m.record.round == object.round; });
  return mean == means_.end() ? nullptr : &mean->segments;
}

void Donor::on_chunk_ask(PeerId from, const wire::ChunkAsk& ask) {
  const auto found = followers_.find(from);
  const auto* chunks = found == followers_.end() ? nullptr : chunks_of(found->second, ask.object);
  if (chunks == nullptr || ask.index >= chunks->size()) {
    send_gone(from, ask.object);
    return;
  }
  auto& asks = found->second.asks;
  if (std::find(asks.begin(), asks.end(), ask) != asks.end()) return;
  if (asks.size() == options_.max_chunk_asks) asks.pop_front();
  asks.push_back(ask);
  wake(from);
}

void Donor::wake(PeerId peer) {
  if (std::find(wakeups_.begin(), wakeups_.end(), peer) == wakeups_.end()) wakeups_.push_back(peer);
}

void Donor::wake_followers() {
  for (const auto& [peer, follower] : followers_) {
    if (!follower.asks.empty()) wake(peer);
  }
}

std::optional<wire::Message> Donor::next_bulk(PeerId to) {
  const auto found = followers_.find(to);
  if (found == followers_.end() || found->second.asks.empty()) return std::nullopt;
  Follower& follower = found->second;
  const wire::ChunkAsk ask = follower.asks.front();
  follower.asks.pop_front();
  follower.offers = 0;
  const auto* chunks = chunks_of(follower, ask.object);
  TW_CHECK(chunks != nullptr && ask.index < chunks->size());
  return wire::Chunk{ask.object, ask.index, (*chunks)[ask.index]};
}

void Donor::on_done(PeerId from) {
  followers_.erase(from);
  release_unused();
}

void Donor::on_close(PeerId peer) { on_done(peer); }

bool Donor::wants_image() const {
  return std::any_of(followers_.begin(), followers_.end(),
                     [](const auto& entry) { return entry.second.waiting; });
}

void Donor::give(Image image) {
  TW_CHECK(image != nullptr && !image->chunks.empty() && image->digests.size() == image->chunks.size());
  image_bytes_ = image->bytes() + image->chunks.size() * (sizeof(Blob) + sizeof(Digest));
  images_.push_back(std::move(image));
  for (auto& [peer, follower] : followers_) {
    if (follower.waiting) offer_image(peer, follower);
  }
  release_unused();
  if (images_.size() > kMaxImages) drop_oldest_image();
}

void Donor::keep_mean(const wire::Record& record, std::vector<Blob> segments) {
  TW_CHECK(!segments.empty());
  for (auto& [peer, follower] : followers_) follower.offers = 0;
  if (!images_.empty() && rarely(options_.rarely, "donor.drop_image")) drop_oldest_image();
  if (!means_.empty() && rarely(options_.rarely, "donor.drop_mean")) drop_mean(0);
  // Rounds repeat only when this peer has changed to another history: means of the former one are void.
  while (!means_.empty() && means_.back().record.round >= record.round) drop_mean(means_.size() - 1);
  if (followers_.empty()) return;
  std::uint64_t bytes = 0;
  for (const Blob& segment : segments) bytes += segment.size();
  means_.push_back({record, std::move(segments), bytes, {}});
  if (means_.size() > options_.max_means) drop_mean(0);
}

void Donor::forget_asks(PeerId peer, Follower& follower, wire::ObjectId object) {
  if (std::erase_if(follower.asks, [&](const wire::ChunkAsk& ask) { return ask.object == object; }) > 0) {
    send_gone(peer, object);
  }
}

void Donor::drop_oldest_image() {
  const Image oldest = std::move(images_.front());
  images_.pop_front();
  for (auto& [peer, follower] : followers_) {
    if (follower.image != oldest) continue;
    follower.image = nullptr;
    forget_asks(peer, follower, id_of(*oldest));
  }
}

void Donor::drop_mean(std::size_t index) {
  const wire::ObjectId object{wire::ObjectKind::mean, means_[index].record.round};
  means_.erase(means_.begin() + static_cast<std::ptrdiff_t>(index));
  for (auto& [peer, follower] : followers_) forget_asks(peer, follower, object);
}

void Donor::release_unused() {
  if (followers_.empty()) {
    images_.clear();
    means_.clear();
    return;
  }
  // The newest stays for peers that still come; an older one only while some peer fetches it.
  const auto is_unused = [&, newest = images_.empty() ? Image() : images_.back()](const Image& image) {
    return image != newest &&
           std::ranges::none_of(followers_, [&](const auto& f) { return f.second.image == image; });
  };
  std::erase_if(images_, is_unused);
}

std::uint64_t Donor::held_bytes() const {
  std::uint64_t bytes = images_.size() * image_bytes_;
  for (const Mean& mean : means_) {
    bytes += mean.bytes + mean.segments.size() * sizeof(Blob) + mean.digests.size() * sizeof(Digest);
  }
  for (const auto& [peer, follower] : followers_) {
    static_assert(sizeof follower <= kFollowerBytes);
    bytes += kFollowerBytes + follower.asks.size() * sizeof(wire::ChunkAsk);
  }
  return bytes;
}

wire::Outbox Donor::take_messages() { return std::exchange(outbox_, {}); }

std::vector<PeerId> Donor::take_wakeups() { return std::exchange(wakeups_, {}); }

}  // namespace tw::sync
