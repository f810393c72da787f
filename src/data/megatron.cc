// SPDX-License-Identifier: Apache-2.0
#include "data/megatron.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

namespace tw::data {
namespace {

constexpr std::string_view kMagic{"MMIDIDX\0\0", 9};
constexpr std::size_t kVersionAt = 9, kTypeAt = 17, kSequencesAt = 18, kDocumentsAt = 26, kHeaderBytes = 34;
constexpr std::uint64_t kVersion = 1;

template <class Word>
Word little_endian(std::span<const std::byte> bytes, std::uint64_t at) {
  std::make_unsigned_t<Word> word = 0;
  for (std::size_t i = sizeof(Word); i-- > 0;)
    word = static_cast<decltype(word)>((std::uint64_t{word} << 8U) |
                                       std::to_integer<std::uint8_t>(bytes[at + i]));
  return static_cast<Word>(word);
}

/// DType of indexed_dataset.py; nothing for types that are no tokens.
std::optional<TokenType> type_of(std::uint8_t code) {
  switch (code) {
    case 1:
      return TokenType::uint8;
    case 2:
      return TokenType::int8;
    case 3:
      return TokenType::int16;
    case 4:
      return TokenType::int32;
    case 5:
      return TokenType::int64;
    case 8:
      return TokenType::uint16;
    default:
      return std::nullopt;
  }
}

/// The lengths must be positive, and each sequence must begin where the one before it ends.
Status add_up(std::span<const std::byte> file, MegatronIndex& index) {
  constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 60U;
  const std::uint64_t lengths = kHeaderBytes, places = lengths + 4 * index.sequences;
  const std::uint64_t width = bytes_of(index.type);
  for (std::uint64_t i = 0; i < index.sequences; ++i) {
    const auto length = little_endian<std::int32_t>(file, lengths + 4 * i);
    const auto place = little_endian<std::int64_t>(file, places + 8 * i);
    if (length < 0)
      return Error{fmt::format("sequence {}: expected a length of at least 0, found {}", i, length)};
    if (place < 0 || static_cast<std::uint64_t>(place) != index.tokens * width)
      return Error{fmt::format("sequence {}: expected byte {} (sequences follow one another), found {}", i,
                               index.tokens * width, place)};
    index.tokens += static_cast<std::uint64_t>(length);
    if (index.tokens > kMostTokens)
      return Error{fmt::format("sequence {}: more than 2^60 tokens up to here", i)};
  }
  return Unit{};
}

}  // namespace

std::size_t bytes_of(TokenType type) {
  switch (type) {
    case TokenType::uint8:
    case TokenType::int8:
      return 1;
    case TokenType::uint16:
    case TokenType::int16:
      return 2;
    case TokenType::uint32:
    case TokenType::int32:
      return 4;
    case TokenType::int64:
      break;
  }
  return 8;
}

Result<MegatronIndex> read_megatron_index(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic))
    return Error{"not a Megatron index: expected MMIDIDX and two zeros at its beginning"};
  if (file.size() < kHeaderBytes)
    return Error{
        fmt::format("truncated: its header needs {} bytes, the file has {}", kHeaderBytes, file.size())};
  if (const auto version = little_endian<std::uint64_t>(file, kVersionAt); version != kVersion)
    return Error{fmt::format("expected version {}, found {}", kVersion, version)};
  const auto code = little_endian<std::uint8_t>(file, kTypeAt);
  const auto type = type_of(code);
  if (!type)
    return Error{
        fmt::format("type code {}: expected integers (1 uint8, 2 int8, 3 int16, 4 int32, 5 int64 or 8 "
                    "uint16)",
                    code)};
  MegatronIndex index{.type = *type,
                      .sequences = little_endian<std::uint64_t>(file, kSequencesAt),
                      .documents = little_endian<std::uint64_t>(file, kDocumentsAt)};
  const std::uint64_t rest = file.size() - kHeaderBytes;
  const bool too_many = index.sequences > rest / 12 || index.documents > (rest - 12 * index.sequences) / 8;
  if (too_many)
    return Error{fmt::format("truncated: {} sequences and {} documents do not fit in {} bytes",
                             index.sequences, index.documents, file.size())};
  // Multimodal data has one byte more per sequence.
  const std::uint64_t left = rest - 12 * index.sequences - 8 * index.documents;
  if (left != 0 && left != index.sequences)
    return Error{fmt::format("{} bytes follow its {} sequences and {} documents, expected none", left,
                             index.sequences, index.documents)};
  if (const Status added = add_up(file, index); !added) return added.error();
  return index;
}

}  // namespace tw::data
