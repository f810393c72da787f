// SPDX-License-Identifier: Apache-2.0
#include "codec/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "base/cpu_features.h"
#include "base/prng.h"
#include "codec/blocks.h"
#include "codec/kernels.h"

namespace tw::codec {
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

// Each class of float is frequent: near a half, near a tie of two halves, subnormal, huge, not finite.
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

// The nearest half, by arithmetic in double only.
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

template <class Word>
std::vector<Word> all_words() {
  std::vector<Word> words;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) words.push_back(static_cast<Word>(bits));
  return words;
}

TEST(SixteenBits, every_word_survives_a_round_trip) {
  const auto words = all_words<std::uint16_t>();
  for (const Codec codec : {Codec::fp16, Codec::bf16}) {
    const std::uint32_t infinity = codec == Codec::fp16 ? 0x7c00 : 0x7f80;
    const std::uint32_t quiet = codec == Codec::fp16 ? 0x200 : 0x40;
    for (const KernelSet& set : kernel_sets()) {
      std::vector<float> values(words.size());
      ASSERT_FALSE(set.of(codec).decode(reinterpret_cast<const std::byte*>(words.data()), words.size(),
                                        values.data()));
      std::vector<std::uint16_t> again(words.size());
      set.of(codec).encode(values.data(), values.size(), 1.0F, reinterpret_cast<std::byte*>(again.data()));
      for (const std::uint32_t bits : words) {
        ASSERT_EQ(std::isfinite(values[bits]), (bits & 0x7fff) < infinity) << set.name << " " << bits;
        ASSERT_EQ(again[bits], (bits & 0x7fff) > infinity ? bits | quiet : bits) << set.name;
      }
    }
  }
}

std::uint16_t brain_of(float value) {
  std::uint16_t word = 0;
  encode(Codec::bf16, {&value, 1}, 1, std::as_writable_bytes(std::span(&word, 1)));
  return word;
}

TEST(Bf16, knows_the_landmarks) {
  EXPECT_EQ(brain_of(1.0F), 0x3f80);
  EXPECT_EQ(brain_of(-0.0F), 0x8000);
  EXPECT_EQ(brain_of(1.0F + 0x1p-8F), 0x3f80) << "a tie goes to even";
  EXPECT_EQ(brain_of(1.0F + 0x3p-8F), 0x3f82) << "a tie goes to even";
  EXPECT_EQ(brain_of(1.0F + 0x1.0002p-8F), 0x3f81);
  EXPECT_EQ(brain_of(-std::numeric_limits<float>::max()), 0xff7f) << "finite values saturate";
  EXPECT_EQ(brain_of(std::numeric_limits<float>::denorm_min()), 0x0000);
  EXPECT_EQ(brain_of(0x1p-133F), 0x0001) << "subnormal values stay";
  EXPECT_EQ(brain_of(kInfinity), 0x7f80);
  EXPECT_EQ(brain_of(kNan) & 0x7fc0, 0x7fc0);
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

/// Random bytes, some of which no encoder produces.
std::vector<std::byte> arbitrary_bytes(Prng& prng, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(prng.next());
  return bytes;
}

/// Any values, or values within a few powers of two of each other; in one of 16 vectors few are finite.
std::vector<float> edgy_values(Prng& prng, std::size_t count) {
  std::vector<float> values(count);
  const int exponent = static_cast<int>(prng.below(290)) - 155;
  const bool wild = prng.chance(0.3);
  for (float& value : values) {
    value = wild ? edgy_float(prng) : static_cast<float>(std::ldexp(prng.uniform() - 0.5, exponent));
    if (!std::isfinite(value) && !prng.chance(1.0 / 16)) value = 0;
  }
  return values;
}

/// A kernel, and the alignment of its data.
struct Trial {
  const KernelSet& set;
  Codec codec;
  std::size_t count = 0;
  std::size_t shift = 0;
};

struct Encoded {
  std::vector<std::byte> bytes;
  bool addable = false;

  bool operator==(const Encoded&) const = default;
};

Encoded encoded(const Trial& t, const std::vector<float>& values, float scale) {
  const std::size_t size = encoded_bytes(t.codec, t.count);
  std::vector<std::byte> out(size + t.shift + 1, std::byte{0x5a});
  const Kernel& kernel = t.set.of(t.codec);
  const bool addable = kernel.encode(values.data() + t.shift, t.count, scale, out.data() + t.shift);
  EXPECT_EQ(out.back(), std::byte{0x5a}) << t.set.name << " wrote beyond its end";
  const auto begin = out.begin() + static_cast<std::ptrdiff_t>(t.shift);
  return {{begin, out.end() - 1}, addable};
}

/// Decoded values, or added ones; as bits, so that NaN can be compared.
std::vector<std::uint32_t> decoded(const Trial& t, const std::vector<std::byte>& bytes, const float* weight,
                                   bool& finite) {
  std::vector<std::byte> in(t.shift + bytes.size());
  std::copy(bytes.begin(), bytes.end(), in.begin() + static_cast<std::ptrdiff_t>(t.shift));
  std::vector<float> out(t.count + t.shift + 1, 0.37F);
  const Kernel& kernel = t.set.of(t.codec);
  finite = kernel.is_addable(in.data() + t.shift, t.count);
  if (weight != nullptr) {
    kernel.add(in.data() + t.shift, t.count, *weight, out.data() + t.shift);
  } else {
    finite = kernel.decode(in.data() + t.shift, t.count, out.data() + t.shift);
  }
  EXPECT_EQ(out.back(), 0.37F) << t.set.name << " wrote beyond its end";
  std::vector<std::uint32_t> bits;
  for (const float value : out) {
    bits.push_back(weight != nullptr && std::isnan(value) ? ~0U : std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

TEST(Kernels, are_all_those_that_the_processor_has) {
  const CpuFeatures features = cpu_features();
  const std::string fastest = features.avx512 ? "avx512" : features.avx2 ? "avx2" : "reference";
  EXPECT_EQ(kernel_sets().back().name, fastest);
}

TEST(Kernels, give_the_same_bits_at_any_length_and_alignment) {
  const std::vector<KernelSet> sets = kernel_sets();
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Prng prng(seed);
    const Codec codec = kCodecs[seed % kCodecs.size()];
    const Trial judge{sets.front(), codec, prng.below(prng.chance(0.2) ? 1200 : 90), prng.below(8)};
    const float scale =
        prng.chance(0.3) ? 1.0F : static_cast<float>(1.0 / static_cast<double>(1 + prng.below(4096)));
    const std::vector<float> values = edgy_values(prng, judge.count + judge.shift);
    const std::vector<std::byte> foreign = arbitrary_bytes(prng, encoded_bytes(codec, judge.count));
    const Encoded expected = encoded(judge, values, scale);
    for (const KernelSet& set : sets) {
      const Trial trial{set, codec, judge.count, judge.shift};
      const std::string where =
          std::string(set.name) + " " + std::string(name_of(codec)) + ", seed " + std::to_string(seed);
      ASSERT_EQ(encoded(trial, values, scale), expected) << where;
      for (const auto& bytes : {expected.bytes, foreign}) {
        for (const float* weight : {static_cast<const float*>(nullptr), &scale}) {
          bool finite = false, also_finite = false;
          ASSERT_EQ(decoded(trial, bytes, weight, finite), decoded(judge, bytes, weight, also_finite))
              << where;
          ASSERT_EQ(finite, also_finite) << where;
        }
      }
    }
  }
}

TEST(Kernels, dither_alike) {
  const std::vector<KernelSet> sets = kernel_sets();
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    Prng prng(seed);
    const std::vector<float> values = edgy_values(prng, prng.below(1200));
    const Dither dither{static_cast<std::uint32_t>(prng.next()), static_cast<std::uint32_t>(prng.next())};
    std::vector<std::byte> expected(encoded_bytes(Codec::int8, values.size()));
    const bool addable =
        sets.front().dither_int8(values.data(), values.size(), 0.25F, dither, expected.data());
    for (const KernelSet& set : sets) {
      std::vector<std::byte> bytes(expected.size());
      EXPECT_EQ(set.dither_int8(values.data(), values.size(), 0.25F, dither, bytes.data()), addable);
      ASSERT_EQ(bytes, expected) << set.name << ", seed " << seed;
    }
  }
}

TEST(Dither, gives_the_value_on_average_and_the_same_bits_each_time) {
  std::vector<float> values;
  for (int i = 0; i < 300; ++i) values.push_back(static_cast<float>(i) / 7 - 20);
  std::vector<double> sums(values.size());
  std::vector<std::byte> bytes(encoded_bytes(Codec::int8, values.size()));
  constexpr int kSeeds = 2000;
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    encode_int8(values, 1.0F, {seed, 0}, bytes);
    std::vector<float> back(values.size());
    decode(Codec::int8, bytes, back);
    for (std::size_t i = 0; i < values.size(); ++i) sums[i] += double{back[i]};
  }
  const double step = 23.0 / 127;
  for (std::size_t i = 0; i < values.size(); ++i)  // at most 5 times the deviation of a mean of this many
    EXPECT_NEAR(sums[i] / kSeeds, values[i], 5 * step / 2 / std::sqrt(kSeeds)) << i;
}

TEST(Dither, goes_with_the_place_of_a_value_not_with_the_piece_it_is_encoded_in) {
  Prng prng(5);
  const std::vector<float> values = edgy_values(prng, 3 * kCodecPiece);
  std::vector<std::byte> whole(encoded_bytes(Codec::int8, values.size())), piece(kCodecPiece + 2);
  encode_int8(values, 1.0F, {9, 100}, whole);
  encode_int8(std::span(values).subspan(kCodecPiece, kCodecPiece), 1.0F, Dither{9, 100}.from(kCodecPiece),
              piece);
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + kCodecPiece + 2));
  encode_int8(std::span(values).subspan(kCodecPiece, kCodecPiece), 1.0F, {9, 100}, piece);
  EXPECT_FALSE(std::equal(piece.begin(), piece.end(), whole.begin() + kCodecPiece + 2));
}

TEST(Codec, sizes_follow_the_width) {
  EXPECT_EQ(encoded_bytes(Codec::fp32, 7), 28U);
  EXPECT_EQ(encoded_bytes(Codec::fp16, 7), 14U);
  EXPECT_EQ(encoded_bytes(Codec::bf16, 7), 14U);
  EXPECT_EQ(encoded_bytes(Codec::int8, 256), 258U);
  EXPECT_EQ(encoded_bytes(Codec::int8, 257), 261U);
  EXPECT_EQ(encoded_bytes(Codec::int4, 64), 34U);
  EXPECT_EQ(encoded_bytes(Codec::int4, 67), 38U);
  for (const Codec codec : kCodecs) {
    EXPECT_EQ(encoded_bytes(codec, 0), 0U);
    for (std::size_t count = 0; count < 1000; ++count) {
      const std::size_t back = values_in(codec, encoded_bytes(codec, count));
      EXPECT_EQ(back, codec == Codec::int4 ? count + count % 64 % 2 : count) << name_of(codec);
    }
  }
}

TEST(Codec, pieces_are_encoded_as_if_they_stood_alone) {
  Prng prng(1);
  for (const Codec codec : kCodecs) {
    const std::vector<float> values = edgy_values(prng, 5 * kCodecPiece + 77);
    std::vector<std::byte> whole(encoded_bytes(codec, values.size()));
    encode(codec, values, 0.5F, whole);
    for (std::size_t first = 0; first < values.size(); first += kCodecPiece) {
      const auto piece = std::span(values).subspan(first, std::min(kCodecPiece, values.size() - first));
      std::vector<std::byte> alone(encoded_bytes(codec, piece.size()));
      encode(codec, piece, 0.5F, alone);
      const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(encoded_bytes(codec, first));
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), begin)) << name_of(codec) << " " << first;
    }
  }
}

TEST(Codec, fp32_is_one_product) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Prng prng(seed);
    const std::size_t count = prng.below(200);
    const float scale = prng.chance(0.5) ? 1.0F : 1.0F / static_cast<float>(1 + prng.below(100));
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(prng.uniform() - 0.5);
    std::vector<std::byte> bytes(4 * count);
    ASSERT_TRUE(encode(Codec::fp32, values, scale, bytes));
    std::vector<float> back(count);
    ASSERT_TRUE(decode(Codec::fp32, bytes, back));
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(back[i], values[i] * scale) << "seed " << seed;
  }
}

TEST(Codec, adding_is_a_product_and_a_sum_of_what_decode_gives) {
  for (const Codec codec : kCodecs) {
    Prng prng(7);
    std::vector<float> values(777), sum(777);
    for (float& value : values) value = static_cast<float>(prng.uniform() - 0.5);
    for (float& value : sum) value = static_cast<float>(prng.uniform() - 0.5);
    std::vector<std::byte> bytes(encoded_bytes(codec, values.size()));
    encode(codec, values, 1.0F, bytes);
    decode(codec, bytes, values);
    std::vector<float> expected = sum;
    for (std::size_t i = 0; i < sum.size(); ++i) expected[i] += 0.3F * values[i];
    decode_add(codec, bytes, 0.3F, sum);
    EXPECT_EQ(sum, expected) << name_of(codec);
  }
}

TEST(Blocks, lose_at_most_half_a_step_and_nothing_when_encoded_again) {
  for (const auto& [codec, levels, block] :
       {std::tuple(Codec::int8, 127.0, kInt8Block), std::tuple(Codec::int4, 7.0, kInt4Block)}) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
      Prng prng(seed);
      const int exponent = static_cast<int>(prng.below(200)) - 90;
      std::vector<float> values(1 + prng.below(600));
      for (float& v : values) v = static_cast<float>(std::ldexp(prng.uniform() - 0.5, exponent));
      std::vector<std::byte> bytes(encoded_bytes(codec, values.size()));
      ASSERT_TRUE(encode(codec, values, 1.0F, bytes));
      std::vector<float> back(values.size());
      ASSERT_TRUE(decode(codec, bytes, back));
      for (std::size_t first = 0; first < values.size(); first += block) {
        const std::size_t end = std::min(values.size(), first + block);
        double largest = 0;
        for (std::size_t i = first; i < end; ++i) largest = std::max(largest, std::abs(double{values[i]}));
        for (std::size_t i = first; i < end; ++i) {
          ASSERT_LE(std::abs(double{values[i]} - double{back[i]}), 0.503 * largest / levels)
              << "seed " << seed;
        }
      }
      std::vector<std::byte> again(bytes.size());
      encode(codec, back, 1.0F, again);
      ASSERT_EQ(again, bytes) << "seed " << seed;
    }
  }
}

TEST(Blocks, are_laid_out_as_the_header_says) {
  const std::vector<float> three = {7, -3.5F, 1};  // a tie goes to even
  std::vector<std::byte> bytes(encoded_bytes(Codec::int4, 3));
  encode(Codec::int4, three, 2.0F, bytes);
  const std::vector<std::byte> expected = {std::byte{0x00}, std::byte{0x40}, std::byte{0x17},
                                           std::byte{0x0c}};
  EXPECT_EQ(bytes, expected) << "2.0 as bf16, then 7 and 1, then -4";
  const std::vector<float> two = {-254, 3};
  bytes.resize(encoded_bytes(Codec::int8, 2));
  encode(Codec::int8, two, 1.0F, bytes);
  const std::vector<std::byte> expected8 = {std::byte{0x00}, std::byte{0x40}, std::byte{0x81},
                                            std::byte{0x02}};
  EXPECT_EQ(bytes, expected8) << "2.0 as bf16, then -127 and 1.5, which goes to even";
}

TEST(Blocks, know_values_that_are_hardly_there_and_those_that_are_too_large) {
  for (const Codec codec : {Codec::int8, Codec::int4}) {
    for (const float value : {std::numeric_limits<float>::denorm_min(), 0x1p-110F, -0.0F}) {
      std::vector<float> values(100, value);
      std::vector<std::byte> bytes(encoded_bytes(codec, values.size()));
      ASSERT_TRUE(encode(codec, values, 1.0F, bytes));
      EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; }));
    }
    std::vector<float> values(300, -std::numeric_limits<float>::max());
    std::vector<std::byte> bytes(encoded_bytes(codec, values.size()));
    ASSERT_TRUE(encode(codec, values, 1.0F, bytes));
    ASSERT_TRUE(decode(codec, bytes, values));
    EXPECT_EQ(values.front(), codec == Codec::int8 ? -127 * 0x1p119F : -7 * 0x1p119F) << "saturates";
    for (const std::uint16_t scale : {0x7b01, 0x7f80, 0x7fc0, 0x8000, 0xbf80, 0xffff}) {
      std::memcpy(bytes.data(), &scale, sizeof scale);
      EXPECT_FALSE(decode(codec, bytes, values)) << scale;
      EXPECT_FALSE(is_addable(codec, bytes)) << scale;
      EXPECT_TRUE(std::isnan(values.front()));
      EXPECT_TRUE(std::isfinite(values.back())) << "another block";
    }
  }
}

TEST(Codec, reports_one_bad_value_wherever_it_is) {
  for (const Codec codec : kCodecs) {
    for (const std::size_t count : {1U, 7U, 8U, 33U, 70U, 300U}) {
      for (std::size_t at = 0; at < count; ++at) {
        for (const float bad : {kNan, kInfinity, -kInfinity}) {
          std::vector<float> values(count, 3.0F);
          values[at] = bad;
          std::vector<std::byte> bytes(encoded_bytes(codec, count));
          ASSERT_FALSE(encode(codec, values, 0.5F, bytes));
          ASSERT_FALSE(is_addable(codec, bytes));
          ASSERT_FALSE(decode(codec, bytes, values)) << "value " << at << " of " << count;
          ASSERT_FALSE(std::isfinite(values[at]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace tw::codec
