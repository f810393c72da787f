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

Blob OwnSlots::encode(std::uint32_t number, std::uint64_t segment, Fitness& fitness) {
  TW_CHECK(number < wire::kMostSlots && slots_[number]);
  Slot& slot = *slots_[number];
  if (slot.is_unfit) return {};
  const std::uint64_t first = geometry_.first(segment), count = geometry_.size(segment);
  const auto values = slot.gradient_sum.values.subspan(first, count);
  const auto residual = slot.residual.empty() ? slot.residual : slot.residual.subspan(first, count);
  const codec::Codec codec = slot.encoding.codec;
  if (carries_sums(codec) && residual.empty()) {  // the values themselves are what crosses the wire
    const auto piece = std::as_bytes(values);
    return fit(slot, segment, Blob::view(piece, slot.gradient_sum.owner), is_addable(codec, piece), fitness);
  }
  Buffer bytes(encoded_bytes(codec, count));
  const std::uint64_t of_mean = samples_of_mean(codec, slot.samples);
  const auto scale = static_cast<float>(1.0 / static_cast<double>(of_mean));
  Encoding encoding = slot.encoding;
  if (encoding.dither) encoding.dither = encoding.dither->from(first);
  const bool addable = encode_sum(encoding, values, residual, scale, bytes.bytes());
  return fit(slot, segment, Blob(std::move(bytes)), addable, fitness);
}

Blob OwnSlots::fit(Slot& slot, std::uint64_t segment, Blob piece, bool addable, Fitness& fitness) const {
  if (!slot.judged[segment]) slot.squares += fitness.squares_of(piece.bytes());
  slot.judged[segment] = true;  // each segment counts once
  const std::optional<Unfit> unfit = fitness.judge(self_, addable, slot.squares, slot.samples);
  if (!unfit) return piece;
  slot.is_unfit = true;
  fitness.report(*unfit);
  return {};
}

}  // namespace tw::average
