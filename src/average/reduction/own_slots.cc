// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/own_slots.h"

#include <utility>

#include "base/check.h"

namespace tw::average {

void OwnSlots::put(std::uint32_t slot, GradientSum gradient_sum, std::uint64_t samples,
                   std::span<const float> residual, const Encoding& encoding) {
  TW_CHECK(slot < wire::kMostSlots && !slots_[slot] && samples > 0);
  TW_CHECK(gradient_sum.values.size() == geometry_.length);
  TW_CHECK(residual.empty() || residual.size() == geometry_.length);
  slots_[slot] = Slot{.gradient_sum = std::move(gradient_sum),
                      .residual = residual,
                      .samples = samples,
                      .encoding = encoding,
                      .judged = std::vector<bool>(geometry_.segments())};
}

bool OwnSlots::has(std::uint32_t slot, std::uint64_t samples) const {
  return slot < wire::kMostSlots && slots_[slot] && slots_[slot]->samples == samples;
}

OwnSlots::Piece OwnSlots::encode(std::uint32_t number, std::uint64_t segment, const Fitness& fitness) const {
  TW_CHECK(number < wire::kMostSlots && slots_[number]);
  const Slot& slot = *slots_[number];
  if (slot.is_unfit) return {};
  const std::uint64_t first = geometry_.first(segment), count = geometry_.size(segment);
  const auto values = slot.gradient_sum.values.subspan(first, count);
  const auto residual = slot.residual.empty() ? slot.residual : slot.residual.subspan(first, count);
  const codec::Codec codec = slot.encoding.codec;
  Piece piece;
  if (carries_sums(codec) && residual.empty()) {  // the values themselves are what crosses the wire
    piece.encoded = Blob::view(std::as_bytes(values), slot.gradient_sum.owner);
    piece.addable = is_addable(codec, piece.encoded.bytes());
  } else {
    Buffer bytes(encoded_bytes(codec, count));
    const std::uint64_t of_mean = samples_of_mean(codec, slot.samples);
    const auto scale = static_cast<float>(1.0 / static_cast<double>(of_mean));
    Encoding encoding = slot.encoding;
    if (encoding.dither) encoding.dither = encoding.dither->from(first);
    piece.addable = encode_sum(encoding, values, residual, scale, bytes.bytes());
    piece.encoded = Blob(std::move(bytes));
  }
  if (!slot.judged[segment]) piece.squares = fitness.squares_of(piece.encoded.bytes());
  return piece;
}

bool OwnSlots::admit(std::uint32_t number, std::uint64_t segment, const Piece& piece, Fitness& fitness) {
  TW_CHECK(number < wire::kMostSlots && slots_[number]);
  Slot& slot = *slots_[number];
  if (slot.is_unfit) return false;
  if (!slot.judged[segment]) slot.squares += piece.squares;
  slot.judged[segment] = true;  // each segment counts once
  const std::optional<Unfit> unfit = fitness.judge(self_, piece.addable, slot.squares, slot.samples);
  if (!unfit) return true;
  slot.is_unfit = true;
  fitness.report(*unfit);
  return false;
}

}  // namespace tw::average
