// SPDX-License-Identifier: Apache-2.0
#include "base/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/parallel.h"

namespace tw {
namespace {

TEST(Digest, is_the_published_one_of_nothing) {
  // XXH3_128bits of the empty input, seed 0 (xxHash, tests/sanity_test_vectors.h).
  EXPECT_EQ(to_string(digest_of(std::string())), "99aa06d3014798d86001c324468d497f");
}

TEST(Digest, tells_every_flipped_bit) {
  std::vector<std::byte> bytes(40, std::byte{0});
  std::set<Digest> seen = {digest_of(std::span<const std::byte>(bytes))};
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_TRUE(seen.insert(digest_of(std::span<const std::byte>(bytes))).second) << "bit " << bit;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(Digest, of_floats_and_text_is_that_of_their_bytes) {
  const std::vector<float> values = {1.5F, -0.0F};
  EXPECT_EQ(digest_of(std::span<const float>(values)), digest_of(std::as_bytes(std::span(values))));
  EXPECT_NE(digest_of(std::span<const float>(values)),
            digest_of(std::span<const float>(std::vector<float>{1.5F, 0.0F})));
  const std::string text = "tradewind";
  EXPECT_EQ(digest_of(text), digest_of(std::as_bytes(std::span(text))));
}

TEST(Digest, of_parameters_is_the_same_on_any_number_of_threads) {
  std::vector<float> values(4 * kWorthAThread + 3);
  std::ranges::generate(values, [i = 0]() mutable { return static_cast<float>(++i); });
  const Digest alone = digest_of_parameters(values);
  for (const std::size_t threads : {2, 5}) EXPECT_EQ(digest_of_parameters(values, threads), alone);
  const std::span<const float> piece = std::span(values).first(kDigestPiece);
  EXPECT_EQ(digest_of_parameters(piece), digest_of(piece));
  const auto middle = values.begin() + kDigestPiece;
  std::swap_ranges(values.begin(), middle, middle);
  EXPECT_NE(digest_of_parameters(values), alone) << "pieces have changed places";
  std::swap_ranges(values.begin(), middle, middle);
  values.back() += 1;
  EXPECT_NE(digest_of_parameters(values), alone);
}

TEST(Digest, of_a_vector_that_changes_in_ranges_is_that_of_its_values) {
  std::vector<float> values(5 * kDigestPiece + 100);
  ParameterDigest known;
  EXPECT_EQ(known.of(values), digest_of_parameters(values));
  const auto change = [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) values[i] += 1;
    known.changed(first, count);
    EXPECT_EQ(known.of(values), digest_of_parameters(values)) << first << ", " << count;
  };
  change(0, 1);
  change(kDigestPiece - 1, 2);
  change(2 * kDigestPiece, kDigestPiece);
  change(values.size() - 1, 1);
  change(0, values.size());
  const Digest before = known.of(values);
  values[kDigestPiece] += 1;
  EXPECT_EQ(known.of(values), before) << "not told";
  known.changed();
  EXPECT_NE(known.of(values), before);
}

TEST(Digest, of_pieces_is_that_of_the_whole) {
  std::vector<float> values;
  for (int i = 0; i < 5000; ++i) values.push_back(static_cast<float>(i));
  const std::span<const float> all(values);
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{2048}, values.size()}) {
    Digester digester;
    digester.add(all.first(cut));
    digester.add(all.subspan(cut));
    EXPECT_EQ(digester.digest(), digest_of(all)) << cut;
  }
}

TEST(Digest, prints_leading_zeros) {
  EXPECT_EQ(to_string(Digest{1, 0xabc}), "00000000000000010000000000000abc");
}

}  // namespace
}  // namespace tw
