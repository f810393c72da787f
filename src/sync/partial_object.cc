// SPDX-License-Identifier: Apache-2.0
#include "sync/partial_object.h"

#include <utility>

#include "base/check.h"

namespace tw::sync {

void PartialObject::begin(Instant now, const wire::ObjectOffer& offer, const Digest& content,
                          const ChunkLayout& layout) {
  TW_CHECK(offer.bytes == layout.bytes && offer.chunks.size() == layout.count());
  clear();
  offer_ = offer;
  content_ = content;
  layout_ = layout;
  since_ = now;
  chunks_.resize(offer.chunks.size());
  for (std::uint32_t i = 0; i < chunks_.size(); ++i) free_.insert(free_.end(), i);
}

const wire::ObjectOffer& PartialObject::offer() const {
  TW_CHECK(begun());
  return *offer_;
}

bool PartialObject::fits(const wire::Chunk& chunk) const {
  return begun() && chunk.index < chunks_.size() && chunk.payload.size() == layout_.size(chunk.index) &&
         digest_of(chunk.payload.bytes()) == offer_->chunks[chunk.index];
}

bool PartialObject::add(wire::Chunk chunk) {
  TW_CHECK(chunk.index < chunks_.size());
  Blob& place = chunks_[chunk.index];
  if (!place.empty()) return false;
  place = std::move(chunk.payload);
  ++here_;
  free_.erase(chunk.index);
  return true;
}

std::optional<std::uint32_t> PartialObject::next_free(const std::set<std::uint32_t>& but) const {
  const auto next = std::ranges::find_if(free_, [&](std::uint32_t index) { return !but.contains(index); });
  return next == free_.end() ? std::nullopt : std::optional(*next);
}

void PartialObject::take(std::uint32_t index) { TW_CHECK(free_.erase(index) == 1); }

void PartialObject::give_back(std::uint32_t index) {
  TW_CHECK(index < chunks_.size() && chunks_[index].empty());
  TW_CHECK(free_.insert(index).second);
}

std::uint64_t PartialObject::bytes_here() const {
  return std::min(here_ * layout_.chunk_bytes, layout_.bytes);
}

std::uint64_t PartialObject::held_bytes() const {
  if (!begun()) return 0;
  return offer_->chunks.size() * sizeof(Digest) + chunks_.size() * sizeof(Blob) + bytes_here();
}

PartialObject::Whole PartialObject::release() {
  TW_CHECK(complete());
  Whole whole{std::move(*offer_), std::move(chunks_)};
  clear();
  return whole;
}

}  // namespace tw::sync
