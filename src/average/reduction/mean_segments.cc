// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/mean_segments.h"

#include <utility>

#include "average/reduction/mean_digest.h"
#include "average/reduction/weighted_sum.h"
#include "base/check.h"

namespace tw::average {

MeanSegments::MeanSegments(const Geometry& geometry, codec::Codec codec)
    : geometry_(geometry), codec_(codec), encoded_(geometry.segments()), digests_(geometry.segments()) {
  TW_CHECK(!encoded_.empty());
}

void MeanSegments::change_set(std::uint64_t set) {
  std::optional<Voted> leaving;
  if (complete()) leaving = Voted{set_, encoded_};
  set_ = set;
  encoded_.assign(encoded_.size(), Blob());
  here_ = 0;
  if (voted_ && voted_->set == set_) {
    for (std::uint64_t s = 0; s < encoded_.size(); ++s) TW_CHECK(take(s, voted_->segments[s]));
  }
  if (leaving) voted_ = std::move(leaving);
}

bool MeanSegments::has(std::uint64_t segment) const { return !at(segment).empty(); }

const Blob& MeanSegments::at(std::uint64_t segment) const {
  TW_CHECK(segment < encoded_.size());
  return encoded_[segment];
}

void MeanSegments::put(std::uint64_t segment, Blob encoded, const Digest& decoded) {
  TW_CHECK(!has(segment) && encoded.size() == encoded_bytes(codec_, geometry_.size(segment)));
  encoded_[segment] = std::move(encoded);
  digests_[segment] = decoded;
  ++here_;
  if (complete()) digest_ = digest_of_segments(digests_);
}

bool MeanSegments::take(std::uint64_t segment, const Blob& encoded) {
  const auto decoded = digest_of_decoded(codec_, encoded.bytes(), geometry_.size(segment));
  if (decoded) put(segment, encoded, *decoded);
  return decoded.has_value();
}

const std::vector<Blob>& MeanSegments::segments() const {
  TW_CHECK(complete());
  return encoded_;
}

Digest MeanSegments::digest() const {
  TW_CHECK(complete());
  return digest_;
}

std::uint64_t MeanSegments::held_bytes() const {
  const std::uint64_t vector = encoded_bytes(codec_, geometry_);
  return (here_ > 0 ? vector : 0) + (voted_ ? vector : 0);
}

}  // namespace tw::average
