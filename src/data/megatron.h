// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace tw::data {

/// Storage type of a token in a file; little-endian.
enum class TokenType : std::uint8_t { uint8, int8, uint16, int16, uint32, int32, int64 };

/// In [1, 8].
std::size_t bytes_of(TokenType type);

/// Content of Megatron-LM's .idx file about the .bin file beside it, whose sequences follow one another.
struct MegatronIndex {
  TokenType type = TokenType::uint16;
  std::uint64_t sequences = 0;
  std::uint64_t documents = 0;
  std::uint64_t tokens = 0;  ///< of all sequences

  bool operator==(const MegatronIndex&) const = default;
};

/// Reads a whole .idx file (Megatron-LM, megatron/core/datasets/indexed_dataset.py: "MMIDIDX\0\0", version 1,
/// type code, counts, lengths, places, documents). O(sequences). The error says what was expected.
Result<MegatronIndex> read_megatron_index(std::span<const std::byte> file);

}  // namespace tw::data
