// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/residual.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "average/reduction/reference.h"
#include "base/parallel.h"
#include "base/prng.h"

namespace tw::average {
namespace {

std::vector<float> random_values(Prng& prng, std::size_t count) {
  std::vector<float> values(count);
  for (float& v : values)
    v = static_cast<float>(std::ldexp(prng.uniform() - 0.5, static_cast<int>(prng.below(6))));
  return values;
}

std::vector<float> sum_of(std::vector<float> a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

TEST(Residual, is_what_the_reference_says_whether_it_was_carried_or_not) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Prng prng(seed);
    const codec::Codec codec = codec::kCodecs[prng.below(codec::kCodecs.size())];
    const Geometry geometry{1 + prng.below(seed % 10 == 0 ? 9000 : 500), 1 + prng.below(5000)};
    const std::vector<float> gradient = random_values(prng, geometry.length);
    const std::vector<float> before = random_values(prng, geometry.length);
    const std::uint64_t samples = 1 + prng.below(100);
    std::optional<std::uint32_t> dither;
    if (codec == codec::Codec::int8 && prng.chance(0.5)) dither = static_cast<std::uint32_t>(prng.next());
    const Encoding encoding{codec, dither ? std::optional(codec::Dither{*dither, 0}) : std::nullopt};
    std::vector<float> carried = before, added = before;
    keep_loss(encoding, geometry, {gradient, samples, true}, carried);
    keep_loss(encoding, geometry, {gradient, samples, false}, added);
    const std::vector<float> all = sum_of(gradient, before);
    EXPECT_EQ(carried, reference_loss(codec, {samples, all, 0, dither}, geometry)) << "seed " << seed;
    EXPECT_EQ(added, sum_of(before, reference_loss(codec, {samples, gradient, 0, dither}, geometry)))
        << "seed " << seed;
  }
}

TEST(Residual, is_added_to_each_value_before_it_is_encoded) {
  for (const codec::Codec codec : codec::kCodecs) {
    Prng prng(3);
    const std::vector<float> gradient = random_values(prng, 5001), residual = random_values(prng, 5001);
    std::vector<std::byte> expected(encoded_bytes(codec, 5001)), bytes = expected;
    encode(codec, sum_of(gradient, residual), 0.25F, expected);
    EXPECT_TRUE(encode_sum({codec}, gradient, residual, 0.25F, bytes));
    EXPECT_EQ(bytes, expected) << name_of(codec);
    std::vector<float> bad = residual;
    bad[4000] = INFINITY;
    EXPECT_FALSE(encode_sum({codec}, gradient, bad, 0.25F, bytes));
    EXPECT_TRUE(encode_sum({codec}, gradient, {}, 0.25F, bytes));
    encode(codec, gradient, 0.25F, expected);
    EXPECT_EQ(bytes, expected) << name_of(codec);
  }
}

TEST(Residual, is_dithered_by_the_place_of_each_value_in_its_segment) {
  constexpr std::uint64_t kSeed = 77, kSamples = 4;
  const Geometry geometry{.length = 10'000, .segment_length = 6'000};
  Prng prng(5);
  const std::vector<float> gradient = random_values(prng, geometry.length);
  const std::vector<float> before = random_values(prng, geometry.length);
  const Encoding encoding{codec::Codec::int8, codec::Dither{kSeed, 0}};
  const std::vector<float> all = sum_of(gradient, before);
  for (std::uint64_t s = 0; s < geometry.segments(); ++s) {
    const std::uint64_t first = geometry.first(s), size = geometry.size(s);
    std::vector<std::byte> expected(encoded_bytes(codec::Codec::int8, size)), bytes = expected;
    const codec::Dither dither = encoding.dither->from(first);
    codec::encode_int8(std::span(all).subspan(first, size), 0.25F, dither, expected);
    EXPECT_TRUE(encode_sum({codec::Codec::int8, dither}, std::span(gradient).subspan(first, size),
                           std::span(before).subspan(first, size), 0.25F, bytes));
    EXPECT_EQ(bytes, expected) << "segment " << s;
  }
  std::vector<float> kept = before;
  keep_loss(encoding, geometry, {gradient, kSamples, true}, kept);
  EXPECT_EQ(kept, reference_loss(codec::Codec::int8, {kSamples, all, 0, kSeed}, geometry));
}

TEST(Residual, is_the_same_on_any_number_of_threads) {
  const Geometry geometry{.length = 3 * kWorthAThread, .segment_length = 65'536};
  Prng prng(6);
  const std::vector<float> gradient = random_values(prng, geometry.length);
  const Encoding encoding{codec::Codec::int8, codec::Dither{7, 0}};
  std::vector<float> alone = random_values(prng, geometry.length), shared = alone;
  keep_loss(encoding, geometry, {gradient, 4, true}, alone);
  keep_loss(encoding, geometry, {gradient, 4, true}, shared, 3);
  EXPECT_EQ(shared, alone);
}

/// Largest difference between the summed gradients of many rounds and what others received.
double missing_after(int rounds, codec::Codec codec, bool feeds_back) {
  constexpr std::uint64_t kSamples = 4;
  const Geometry geometry{.length = 500, .segment_length = 200};
  Prng prng(1);
  std::vector<double> wanted(geometry.length), got(geometry.length);
  std::vector<float> residual(geometry.length);
  const std::vector<float> drift = random_values(prng, geometry.length);
  for (int round = 0; round < rounds; ++round) {
    const std::vector<float> gradient = sum_of(random_values(prng, geometry.length), drift);
    const std::vector<float> sent = feeds_back ? sum_of(gradient, residual) : gradient;
    const std::vector<float> loss = reference_loss(codec, {kSamples, sent}, geometry);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      wanted[i] += double{gradient[i]};
      got[i] += double{sent[i]} - double{loss[i]};
    }
    if (feeds_back) keep_loss({codec}, geometry, {gradient, kSamples, true}, residual);
  }
  double worst = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) worst = std::max(worst, std::abs(wanted[i] - got[i]));
  return worst;
}

TEST(Residual, keeps_what_is_missing_from_growing_with_the_rounds) {
  for (const codec::Codec codec : {codec::Codec::int8, codec::Codec::int4}) {
    const double step = codec == codec::Codec::int8 ? 32.0 / 127 : 32.0 / 7;
    EXPECT_LT(missing_after(10, codec, true), step);
    EXPECT_LT(missing_after(1000, codec, true), step) << name_of(codec);
    EXPECT_GT(missing_after(1000, codec, false), 3 * step) << "without it, it grows";
  }
}

}  // namespace
}  // namespace tw::average
