// SPDX-License-Identifier: Apache-2.0
#include "sync/image.h"

#include <gtest/gtest.h>

#include <utility>

#include "sync/test_state.h"

namespace tw::sync {
namespace {

using Parts = std::vector<std::vector<float>>;

std::vector<std::span<const float>> views(const Parts& parts) { return {parts.begin(), parts.end()}; }

std::vector<std::span<float>> places(Parts& parts) { return {parts.begin(), parts.end()}; }

Parts zeros_like(const Parts& parts) {
  Parts zeros;
  for (const auto& part : parts) zeros.emplace_back(part.size());
  return zeros;
}

TEST(Image, gives_back_what_was_frozen_whatever_the_sizes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Prng prng(seed);
    Parts parts;
    for (std::uint64_t n = 1 + prng.below(4); n > 0; --n) {
      parts.push_back(sample::floats(prng.next(), prng.below(prng.chance(0.2) ? 1 : 40)));
    }
    const std::uint64_t chunk_bytes = 1 + prng.below(90);  // also cuts floats in two
    wire::Record record;
    record.round = seed;

    const StateImage image = freeze(record, views(parts), chunk_bytes);

    EXPECT_EQ(image.record, record);
    EXPECT_EQ(image.parameters, digest_of_parameters(parts[0]));
    std::uint64_t total = 0;
    for (const auto& part : parts) total += part.size() * sizeof(float);
    EXPECT_EQ(image.bytes(), total);
    ASSERT_EQ(image.digests.size(), image.chunks.size());
    for (std::size_t i = 0; i < image.chunks.size(); ++i) {
      const bool last = i + 1 == image.chunks.size();
      EXPECT_EQ(image.chunks[i].size(), last ? total - i * chunk_bytes : chunk_bytes);
      EXPECT_EQ(image.digests[i], digest_of(image.chunks[i].bytes()));
    }
    Parts back = zeros_like(parts);
    const Status thawed = thaw(image, places(back));
    EXPECT_TRUE(thawed.ok());
    EXPECT_EQ(back, parts);
  }
}

TEST(Image, of_parameters_of_several_pieces_gives_them_back) {
  const Parts parts{sample::floats(1, 2 * kDigestPiece + 3), sample::floats(2, 5)};
  const StateImage image = freeze(wire::Record{}, views(parts), 1 << 16);
  EXPECT_EQ(image.parameters, digest_of_parameters(parts[0]));
  Parts back = zeros_like(parts);
  EXPECT_TRUE(thaw(image, places(back)).ok());
  EXPECT_EQ(back, parts);
}

TEST(Image, thaws_into_parts_that_are_cut_differently) {
  const Parts whole{sample::floats(1, 10), sample::floats(2, 10)};
  const StateImage image = freeze(wire::Record{}, views(whole), 16);
  Parts cut{std::vector<float>(10), std::vector<float>(3), std::vector<float>(7)};
  ASSERT_TRUE(thaw(image, places(cut)).ok());
  EXPECT_EQ(cut[0], whole[0]);
  EXPECT_EQ(cut[1].front(), whole[1][0]);
  EXPECT_EQ(cut[2].back(), whole[1][9]);
}

TEST(Image, refuses_to_thaw_into_a_model_of_another_size) {
  const StateImage image = freeze(wire::Record{}, views({sample::floats(1, 10)}), 16);
  for (const std::size_t size : {9, 11}) {
    Parts other{std::vector<float>(size)};
    const Status thawed = thaw(image, places(other));
    ASSERT_FALSE(thawed.ok());
    EXPECT_NE(thawed.error().message.find("40 bytes"), std::string::npos) << thawed.error().message;
  }
}

TEST(Image, notices_parameters_that_differ_from_their_digest) {
  const Parts parts{sample::floats(1, 10), sample::floats(2, 10)};
  StateImage image = freeze(wire::Record{}, views(parts), 16);
  std::vector<std::byte> bytes(image.chunks[1].bytes().begin(), image.chunks[1].bytes().end());
  bytes[5] ^= std::byte{1};
  image.chunks[1] = Blob(std::move(bytes));
  Parts back = zeros_like(parts);
  EXPECT_FALSE(thaw(image, places(back)).ok());
}

}  // namespace
}  // namespace tw::sync
