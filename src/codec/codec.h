// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tw::codec {

/// How gradients cross the wire. All little-endian, at any alignment.
///
/// fp32, fp16, bf16: one value after the other. Nearest even; finite values beyond the range become the
/// largest value, infinity stays, a NaN keeps its sign and the upper bits of its payload and is quiet.
///
/// int8, int4: blocks of 256 and of 64 values, the last one may be shorter; a block is its scale as bf16
/// (2 bytes), then its quanta; a value is scale * quantum, exactly. int8: one byte each, two's complement.
/// int4: of k values, byte i holds value i in its lower half and value (k + 1) / 2 + i in its upper one,
/// two's complement; a half that has no value is 0. With m the largest magnitude of a block: scale = m / 127
/// (int4: m / 7), rounded to nearest even in fp32 and again in bf16, at most 2^119; below 2^-100 it becomes
/// 0, and so do the quanta. quantum = value * (1 / scale), each operation rounded to nearest even in fp32,
/// then to the nearest even integer within +-127 (+-7). A block with NaN or infinity has the scale NaN
/// (0x7fc0) and quanta of 0; a decoder gives NaN for the whole block where a scale is negative, beyond 2^119
/// or no number.
enum class Codec : std::uint8_t { fp32, fp16, bf16, int8, int4 };

inline constexpr std::array kCodecs = {Codec::fp32, Codec::fp16, Codec::bf16, Codec::int8, Codec::int4};

/// In the order of the constants.
inline constexpr std::array<std::string_view, kCodecs.size()> kCodecNames = {"fp32", "fp16", "bf16", "int8",
                                                                             "int4"};

constexpr std::span<const std::string_view> names_of(Codec) { return kCodecNames; }

constexpr std::string_view name_of(Codec codec) { return kCodecNames[static_cast<std::size_t>(codec)]; }

constexpr std::optional<Codec> codec_named(std::string_view name) {
  for (const Codec codec : kCodecs) {
    if (name_of(codec) == name) return codec;
  }
  return std::nullopt;
}

/// What the mean of contributions in this codec crosses the wire as: what rounding takes from a contribution
/// its peer can make good (average/reduction/residual.h), what it takes from the mean nobody can.
constexpr Codec codec_of_mean(Codec codec) { return codec == Codec::int4 ? Codec::int8 : codec; }

/// Pieces that begin at a multiple of so many values are encoded as if they stood alone: such a piece begins
/// at encoded_bytes(codec, first value).
inline constexpr std::size_t kCodecPiece = 256;

/// Whether a contribution crosses the wire as its gradient sum, and not as the mean over its samples: fp32
/// loses nothing by the size of a sum, and needs no multiplication where it is sent.
constexpr bool carries_sums(Codec codec) { return codec == Codec::fp32; }

std::size_t encoded_bytes(Codec codec, std::size_t values);

/// The most values that so many bytes can hold.
std::size_t values_in(Codec codec, std::size_t bytes);

/// Writes scale * values; out.size() == encoded_bytes(codec, values.size()). Returns is_addable of what it
/// wrote.
bool encode(Codec codec, std::span<const float> values, float scale, std::span<std::byte> out);

/// Stochastic rounding of int8: as by chance, so that the expectation of what is decoded is the value, but
/// the same bits whoever encodes the values again. In place of nearest even, the scale is rounded up in bf16,
/// and quantum = floor(value * (1 / scale) + u); u = (h >> 8) / 2^24, where h is lowbias32 (Wellons 2018) of
/// seed + place * 0x9e3779b9, and places count from that of the first value.
struct Dither {
  std::uint32_t seed = 0;
  std::uint32_t first = 0;

  Dither from(std::size_t place) const { return {seed, first + static_cast<std::uint32_t>(place)}; }
};

/// As encode.
bool encode_int8(std::span<const float> values, float scale, Dither dither, std::span<std::byte> out);

/// The inverse of both; in.size() == encoded_bytes(codec, values.size()). False when a value is NaN or
/// infinite.
bool decode(Codec codec, std::span<const std::byte> in, std::span<float> values);

/// sum += weight * decoded value, the product rounded, then the sum; sizes as for decode.
void decode_add(Codec codec, std::span<const std::byte> in, float weight, std::span<float> sum);

/// No value is NaN, infinite, or 2^127 or beyond (which fp32 and bf16 alone can hold): then no mean of such
/// values overflows.
bool is_addable(Codec codec, std::span<const std::byte> encoded);

}  // namespace tw::codec
