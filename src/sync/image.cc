// SPDX-License-Identifier: Apache-2.0
#include "sync/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace tw::sync {

static_assert(std::endian::native == std::endian::little, "images are raw floats of a little-endian machine");

namespace {

template <class Part>
std::uint64_t total_bytes(std::span<const Part> parts) {
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Part& part) { return sum + part.size_bytes(); });
}

}  // namespace

std::uint64_t StateImage::bytes() const {
  return std::accumulate(chunks.begin(), chunks.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Blob& chunk) { return sum + chunk.size(); });
}

StateImage freeze(wire::Record record, std::span<const std::span<const float>> parts,
                  std::uint64_t chunk_bytes) {
  TW_CHECK(!parts.empty());
  TW_CHECK(chunk_bytes > 0);
  StateImage image{std::move(record), digest_of_parameters(parts[0]), {}, {}};
  std::uint64_t rest = total_bytes(parts);
  std::vector<std::byte> chunk;
  for (const std::span<const float> part : parts) {
    for (auto bytes = std::as_bytes(part); !bytes.empty();) {
      if (chunk.empty()) chunk.reserve(std::min(rest, chunk_bytes));
      const auto n = std::min<std::uint64_t>(bytes.size(), chunk_bytes - chunk.size());
      chunk.insert(chunk.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
      bytes = bytes.subspan(n);
      rest -= n;
      if (chunk.size() < chunk_bytes && rest > 0) continue;
      image.digests.push_back(digest_of(std::span<const std::byte>(chunk)));
      image.chunks.emplace_back(std::exchange(chunk, {}));
    }
  }
  return image;
}

Status thaw(const StateImage& image, std::span<const std::span<float>> parts) {
  TW_CHECK(!parts.empty());
  if (image.bytes() != total_bytes(parts)) {
    return Error{fmt::format("the state after round {} has {} bytes, this model and optimizer need {}",
                             image.record.round, image.bytes(), total_bytes(parts))};
  }
  auto chunk = image.chunks.begin();
  std::size_t used = 0;  // of *chunk
  for (const std::span<float> part : parts) {
    for (auto out = std::as_writable_bytes(part); !out.empty();) {
      const auto in = chunk->bytes().subspan(used);
      const std::size_t n = std::min(in.size(), out.size());
      if (n > 0) std::memcpy(out.data(), in.data(), n);
      out = out.subspan(n);
      used += n;
      if (n == in.size()) {
        ++chunk;
        used = 0;
      }
    }
  }
  const Digest found = digest_of_parameters(parts[0]);
  if (found != image.parameters) {
    return Error{fmt::format("the parameters after round {} have digest {}, expected {}", image.record.round,
                             to_string(found), to_string(image.parameters))};
  }
  return Unit{};
}

}  // namespace tw::sync
