// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tw {

/// How gradients cross the wire.
enum class Codec : std::uint8_t { fp32, fp16 };

std::size_t encoded_bytes(Codec codec, std::size_t values);

/// Writes scale * values; out.size() == encoded_bytes(codec, values.size()). fp16 rounds to nearest even;
/// finite values beyond its range become its largest value, NaN and infinity stay what they are.
void encode(Codec codec, std::span<const float> values, float scale, std::span<std::byte> out);

/// The inverse; in.size() == encoded_bytes(codec, values.size()). False when a value is NaN or infinite.
bool decode(Codec codec, std::span<const std::byte> in, std::span<float> values);

}  // namespace tw
