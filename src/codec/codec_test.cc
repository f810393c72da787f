// SPDX-License-Identifier: Apache-2.0
#include "codec/codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/prng.h"
#include "codec/fp16.h"

namespace tw {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::uint16_t half_of(float value, float scale = 1) {
  std::uint16_t half = 0;
  encode(Codec::fp16, {&value, 1}, scale, std::as_writable_bytes(std::span(&half, 1)));
  return half;
}

float through_half(float value) {
  const std::uint16_t half = half_of(value);
  float back = 0;
  decode(Codec::fp16, std::as_bytes(std::span(&half, 1)), {&back, 1});
  return back;
}

// Every class of float comes up often: near a half, near a tie of two halves, subnormal, huge, not finite.
float edgy_float(Prng& prng) {
  const auto raw = static_cast<std::uint32_t>(prng.next());
  const std::uint32_t sign = raw & 0x80000000;
  switch (prng.below(6)) {
    case 0:
      return std::bit_cast<float>(raw);
    case 1:
      return std::bit_cast<float>(sign | 0x7f800000 | (prng.chance(0.5) ? raw & 0x7fffff : 0));
    case 2:
      return std::bit_cast<float>(sign | (static_cast<std::uint32_t>(96 + prng.below(20)) << 23) |
                                  (raw & 0x7fffff));
    case 3:
      return std::bit_cast<float>((sign | 0x477fe000) + static_cast<std::uint32_t>(prng.below(0x4000)) -
                                  0x2000);
    case 4: {
      const float half = through_half(std::bit_cast<float>(sign | (0x37000000 + (raw & 0x0fffffff))));
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(half) + 0x1000 +
                                  static_cast<std::uint32_t>(prng.below(3)) - 1);
    }
    default:
      return std::ldexp(static_cast<float>(prng.below(1 << 12)), -26) * (sign != 0 ? -1.0F : 1.0F);
  }
}

// Where the nearest half lies, by arithmetic in double alone.
double nearest_half(double value) {
  if (std::isinf(value)) return value;
  if (std::abs(value) >= 65504) return std::copysign(65504.0, value);
  if (value == 0) return value;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(value), -14) - 10);
  return std::nearbyint(value / unit) * unit;
}

TEST(Fp16, knows_the_landmarks) {
  EXPECT_EQ(half_of(1.0F), 0x3c00);
  EXPECT_EQ(half_of(-2.0F), 0xc000);
  EXPECT_EQ(half_of(-0.0F), 0x8000);
  EXPECT_EQ(half_of(65504.0F), 0x7bff);
  EXPECT_EQ(half_of(65519.0F), 0x7bff);
  EXPECT_EQ(half_of(65520.0F), 0x7bff) << "finite values saturate";
  EXPECT_EQ(half_of(-3e38F), 0xfbff);
  EXPECT_EQ(half_of(kInfinity), 0x7c00);
  EXPECT_EQ(half_of(-kInfinity), 0xfc00);
  EXPECT_EQ(half_of(kNan) & 0x7e00, 0x7e00);
  EXPECT_EQ(half_of(0x1p-14F), 0x0400);
  EXPECT_EQ(half_of(0x1p-24F), 0x0001);
  EXPECT_EQ(half_of(0x1p-25F), 0x0000) << "a tie goes to even";
  EXPECT_EQ(half_of(0x1.000002p-25F), 0x0001);
  EXPECT_EQ(half_of(0x1.8p-24F), 0x0002);
  EXPECT_EQ(half_of(1.0F + 0x1p-11F), 0x3c00) << "a tie goes to even";
  EXPECT_EQ(half_of(1.0F + 0x3p-11F), 0x3c02) << "a tie goes to even";
}

TEST(Fp16, every_half_survives_a_round_trip) {
  for (const Fp16Kernel& kernel : fp16_kernels()) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto half = static_cast<std::uint16_t>(bits);
      float value = 0;
      const bool finite = kernel.decode(reinterpret_cast<const std::byte*>(&half), 1, &value);
      ASSERT_EQ(finite, std::isfinite(value)) << kernel.name << " " << bits;
      std::uint16_t again = 0;
      kernel.encode(&value, 1, 1.0F, reinterpret_cast<std::byte*>(&again));
      const bool nan = (bits & 0x7fff) > 0x7c00;
      ASSERT_EQ(again, nan ? (bits | 0x200) : bits) << kernel.name;
    }
  }
}

TEST(Fp16, rounds_as_arithmetic_in_double_says) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Prng prng(seed);
    for (int i = 0; i < 20000; ++i) {
      const float value = edgy_float(prng);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(through_half(value))) << "seed " << seed;
      } else {
        ASSERT_EQ(through_half(value), nearest_half(value)) << std::hexfloat << value << " seed " << seed;
      }
    }
  }
}

TEST(Fp16, all_kernels_give_the_same_bits_at_any_length_and_alignment) {
  const Fp16Kernel reference = fp16_reference();
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Prng prng(seed);
    const std::size_t count = prng.below(100);
    const std::size_t shift = prng.below(8);
    const float scale =
        prng.chance(0.3) ? 1.0F : static_cast<float>(1.0 / static_cast<double>(1 + prng.below(4096)));
    std::vector<float> values(count + shift);
    for (float& value : values) value = edgy_float(prng);
    std::vector<std::byte> expected(2 * count);
    reference.encode(values.data() + shift, count, scale, expected.data());
    std::vector<float> expected_back(count);
    const bool expected_finite = reference.decode(expected.data(), count, expected_back.data());
    for (const Fp16Kernel& kernel : fp16_kernels()) {
      std::vector<std::byte> out(2 * count + shift + 1, std::byte{0x5a});
      kernel.encode(values.data() + shift, count, scale, out.data() + shift);
      ASSERT_TRUE(
          std::equal(expected.begin(), expected.end(), out.begin() + static_cast<std::ptrdiff_t>(shift)))
          << kernel.name << " seed " << seed;
      ASSERT_EQ(out.back(), std::byte{0x5a}) << kernel.name << " wrote beyond its end, seed " << seed;
      std::vector<float> back(count + 1, 7.0F);
      ASSERT_EQ(kernel.decode(out.data() + shift, count, back.data()), expected_finite)
          << kernel.name << " seed " << seed;
      ASSERT_TRUE(count == 0 || std::memcmp(back.data(), expected_back.data(), 4 * count) == 0)
          << kernel.name << " seed " << seed;
      ASSERT_EQ(back.back(), 7.0F) << kernel.name << " seed " << seed;
    }
  }
}

TEST(Codec, sizes_follow_the_width) {
  EXPECT_EQ(encoded_bytes(Codec::fp32, 7), 28U);
  EXPECT_EQ(encoded_bytes(Codec::fp16, 7), 14U);
  EXPECT_EQ(encoded_bytes(Codec::fp16, 0), 0U);
}

TEST(Codec, fp32_is_exact_at_scale_one_and_one_product_otherwise) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Prng prng(seed);
    const std::size_t count = prng.below(200);
    const std::size_t shift = prng.below(4);
    const float scale = prng.chance(0.5) ? 1.0F : 1.0F / static_cast<float>(1 + prng.below(100));
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(prng.uniform() - 0.5);
    std::vector<std::byte> bytes(4 * count + shift);
    const auto encoded = std::span(bytes).subspan(shift);
    encode(Codec::fp32, values, scale, encoded);
    std::vector<float> back(count);
    ASSERT_TRUE(decode(Codec::fp32, encoded, back));
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(back[i], values[i] * scale) << "seed " << seed;
  }
}

TEST(Codec, decode_reports_one_bad_value_wherever_it_is) {
  for (const Codec codec : {Codec::fp32, Codec::fp16}) {
    for (const std::size_t count : {1U, 7U, 8U, 33U, 70U}) {
      for (std::size_t at = 0; at < count; ++at) {
        for (const float bad : {kNan, kInfinity, -kInfinity}) {
          std::vector<float> values(count, 3.0F);
          values[at] = bad;
          std::vector<std::byte> bytes(encoded_bytes(codec, count));
          encode(codec, values, 0.5F, bytes);
          ASSERT_FALSE(decode(codec, bytes, values)) << "value " << at << " of " << count;
          ASSERT_FALSE(std::isfinite(values[at]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace tw
