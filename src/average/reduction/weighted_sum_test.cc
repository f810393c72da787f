// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/weighted_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "average/reduction/reference.h"
#include "base/prng.h"

namespace tw::average {
namespace {

using codec::Codec;

TEST(WeightedSum, is_the_reference_mean_at_every_length) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Prng prng(seed);
    const Codec codec = codec::kCodecs[prng.below(codec::kCodecs.size())];
    const Geometry geometry{.length = 1 + prng.below(seed % 10 == 0 ? 9000 : 100)};
    std::vector<std::vector<float>> gradients(1 + prng.below(5));
    std::vector<WeightedGradient> inputs;
    std::uint64_t total = 0;
    for (auto& gradient : gradients) {
      for (std::uint64_t i = 0; i < geometry.length; ++i) {
        gradient.push_back(
            static_cast<float>(std::ldexp(prng.uniform() - 0.5, static_cast<int>(prng.below(40)) - 20)));
      }
      inputs.push_back({1 + prng.below(1000), gradient});
      total += inputs.back().samples;
    }
    std::vector<std::vector<std::byte>> encoded;
    std::vector<Addend> addends;
    for (const WeightedGradient& input : inputs) {
      auto& bytes = encoded.emplace_back(encoded_bytes(codec, geometry.length));
      const double of_mean = carries_sums(codec) ? 1 : static_cast<double>(input.samples);
      encode(codec, input.gradient_sum, static_cast<float>(1.0 / of_mean), bytes);
      addends.push_back({static_cast<float>(of_mean / static_cast<double>(total)), bytes});
    }
    std::vector<std::byte> sum(encoded_bytes(codec_of_mean(codec), geometry.length));
    const Digest digest = reduce_segment(codec, addends, geometry.length, sum);
    std::vector<float> mean(geometry.length);
    ASSERT_TRUE(decode(codec_of_mean(codec), sum, mean));
    ASSERT_EQ(mean, reference_mean(codec, inputs, geometry)) << "seed " << seed;
    ASSERT_EQ(digest, digest_of(std::span<const float>(mean)))
        << "the owner applies what it sends, seed " << seed;
    ASSERT_EQ(digest, digest_of_decoded(codec_of_mean(codec), sum, geometry.length)) << "seed " << seed;
  }
}

TEST(WeightedSum, has_no_digest_of_what_is_not_finite) {
  for (const std::size_t at : {0U, 2048U, 2999U}) {
    for (const Codec codec : codec::kCodecs) {
      std::vector<float> values(3000, 1.0F);
      std::vector<std::byte> bytes(encoded_bytes(codec, values.size()));
      values[at] = std::numeric_limits<float>::infinity();
      encode(codec, values, 1.0F, bytes);
      EXPECT_EQ(digest_of_decoded(codec, bytes, values.size()), std::nullopt) << name_of(codec) << ", " << at;
    }
  }
}

TEST(WeightedSum, refuses_what_could_make_a_mean_overflow) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::size_t count : {1U, 31U, 32U, 33U, 5000U}) {
    for (const std::size_t at : {std::size_t{0}, count / 2, count - 1}) {
      for (const Codec codec : codec::kCodecs) {
        const bool saturates = codec != Codec::fp32 && codec != Codec::bf16;
        std::vector<float> values(count, -1.0F);
        std::vector<std::byte> bytes(encoded_bytes(codec, count));
        const auto addable = [&](float value) {
          values[at] = value;
          const bool told = encode(codec, values, 1.0F, bytes);
          EXPECT_EQ(is_addable(codec, bytes), told);
          return told;
        };
        EXPECT_TRUE(addable(-0x1.fep126F));
        EXPECT_EQ(addable(-0x1.fffffep126F), codec != Codec::bf16) << "bf16 rounds it up";
        EXPECT_EQ(addable(-0x1p127F), saturates) << name_of(codec);
        EXPECT_FALSE(addable(inf));
        EXPECT_FALSE(addable(-inf));
        EXPECT_FALSE(addable(std::nanf("")));
      }
    }
  }
}

TEST(ReferenceMean, weighs_by_samples) {
  const std::vector<float> one = {2, 4};
  const std::vector<float> three = {0, 24};
  const std::vector<WeightedGradient> inputs = {{1, one}, {3, three}};
  const std::vector<float> mean = {0.5F, 7.0F};
  EXPECT_EQ(reference_mean(Codec::fp32, inputs, {.length = 2}), mean);
  EXPECT_EQ(reference_mean(Codec::fp16, inputs, {.length = 2}), mean);
}

TEST(ReferenceMean, rounds_as_the_wire_does) {
  const std::vector<float> values = {1.0F + 0x1p-11F, 1e6F, -0x1p-26F};
  const std::vector<WeightedGradient> inputs = {{1, values}};
  EXPECT_EQ(reference_mean(Codec::fp32, inputs, {.length = 3}), values);
  const std::vector<float> rounded = {1.0F, 65504.0F, 0.0F};
  EXPECT_EQ(reference_mean(Codec::fp16, inputs, {.length = 3}), rounded);
  const std::vector<float> brains = {1.0F, 999424.0F, -0x1p-26F};
  EXPECT_EQ(reference_mean(Codec::bf16, inputs, {.length = 3}), brains);
  const std::vector<float> steps = {254, 3, -1};  // of 2
  const std::vector<float> even = {254, 4, 0};
  const std::vector<WeightedGradient> input = {{1, steps}};
  EXPECT_EQ(reference_mean(Codec::int8, input, {.length = 3}), even);
  EXPECT_EQ(reference_mean(Codec::int8, input, {.length = 3, .segment_length = 1}),
            std::vector<float>({254, 3.007568359375F, -0.99993896484375F}))
      << "blocks end with their segment";
}

TEST(Norm, is_that_of_the_decoded_values_whatever_their_number) {
  for (const Codec codec : codec::kCodecs) {
    for (const std::size_t count : {0U, 1U, 7U, 2048U, 5001U}) {
      Prng prng(count);
      std::vector<float> values(count);
      for (float& value : values) value = static_cast<float>(prng.uniform()) - 0.5F;
      std::vector<std::byte> bytes(encoded_bytes(codec, count));
      encode(codec, values, 1.0F, bytes);
      decode(codec, bytes, values);
      double sum = 0;
      for (const double value : values) sum += value * value;
      EXPECT_NEAR(norm(codec, bytes), std::sqrt(sum), 1e-12 * static_cast<double>(count)) << count;
    }
  }
  std::vector<float> huge(3, 0x1p126F);
  EXPECT_EQ(norm(Codec::fp32, std::as_bytes(std::span(huge).first(1))), 0x1p126);
}

}  // namespace
}  // namespace tw::average
