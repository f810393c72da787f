// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/prng.h"
#include "sync/image.h"
#include "wire/frame.h"

/// Small histories, states and means for the tests of this folder. The same arguments give the same bytes.
namespace tw::sync {

inline constexpr PeerId kAnna{11};
inline constexpr PeerId kBert{12};

}  // namespace tw::sync

namespace tw::sync::sample {

inline constexpr Digest kRun{7, 9};
inline constexpr std::uint64_t kParameters = 41;
inline constexpr std::uint64_t kStateBytes = 3 * kParameters * sizeof(float);
inline constexpr std::uint64_t kChunkBytes = 28;
inline constexpr std::uint64_t kMeanBytes = kParameters * sizeof(float);
inline constexpr std::uint64_t kSegmentBytes = 32;

inline std::vector<float> floats(std::uint64_t seed, std::size_t count) {
  Prng prng(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(prng.uniform()) - 0.5F;
  return values;
}

/// Records 0 to last of one history.
inline std::vector<wire::Record> history(std::uint64_t seed, Round last) {
  std::vector<wire::Record> records(1);
  records[0].run = kRun;
  records[0].members = {{PeerId{1}, "a:1"}, {PeerId{2}, "b:1"}};
  while (records.back().round < last) {
    wire::Record next = records.back();
    next.parent = digest_of(records.back());
    next.round += 1;
    next.first_sample += next.samples;
    next.samples = 64;
    next.mean = digest_of(std::span<const float>(floats(mix(seed, next.round), kParameters)));
    records.push_back(next);
  }
  return records;
}

inline StateImage image(const wire::Record& record, std::uint64_t seed = 1) {
  const auto parameters = floats(mix(seed, record.round), kParameters);
  const auto moments = floats(mix(seed, record.round + 1000), 2 * kParameters);
  const std::array<std::span<const float>, 3> parts{
      std::span(parameters), std::span(moments).first(kParameters), std::span(moments).last(kParameters)};
  return freeze(record, parts, kChunkBytes);
}

/// The fp32 encoding of the mean that history(seed) records.
inline std::vector<Blob> segments(std::uint64_t seed, Round round) {
  const auto values = floats(mix(seed, round), kParameters);
  std::vector<Blob> out;
  for (auto rest = std::as_bytes(std::span(values)); !rest.empty();) {
    const auto n = std::min<std::size_t>(rest.size(), kSegmentBytes);
    out.emplace_back(std::vector(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(n)));
    rest = rest.subspan(n);
  }
  return out;
}

inline std::vector<std::byte> bytes_of(const std::vector<Blob>& chunks) {
  std::vector<std::byte> all;
  for (const Blob& chunk : chunks) all.insert(all.end(), chunk.bytes().begin(), chunk.bytes().end());
  return all;
}

inline bool same(const StateImage& a, const StateImage& b) {
  return a.record == b.record && a.parameters == b.parameters && a.digests == b.digests &&
         sync::sample::bytes_of(a.chunks) == sync::sample::bytes_of(b.chunks);
}

}  // namespace tw::sync::sample
