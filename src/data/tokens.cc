// SPDX-License-Identifier: Apache-2.0
#include "data/tokens.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/digest.h"
#include "data/mapped_file.h"

namespace tw::data {
namespace {

constexpr std::array<std::string_view, 7> kTypeNames = {"uint8",  "int8",  "uint16", "int16",
                                                        "uint32", "int32", "int64"};

std::string_view name_of(TokenType type) { return kTypeNames[static_cast<std::size_t>(type)]; }

/// Tokens of one file, or a part of them from `first` on.
struct Stream {
  std::shared_ptr<const MappedFile> file;  // owners: the parts of it
  TokenType type;
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  std::span<const std::byte> bytes() const {
    return file->bytes().subspan(first * bytes_of(type), count * bytes_of(type));
  }

  Stream part(std::uint64_t from, std::uint64_t tokens) const { return {file, type, first + from, tokens}; }

  std::uint64_t samples(std::uint64_t context) const { return count == 0 ? 0 : (count - 1) / context; }
};

template <class Word>
void widen(std::span<const std::byte> bytes, std::int64_t* out) {
  for (std::size_t i = 0; i < bytes.size() / sizeof(Word); ++i) {
    Word word;  // x86-64 is little-endian, as the file is
    std::memcpy(&word, bytes.data() + i * sizeof(Word), sizeof(Word));
    out[i] = static_cast<std::int64_t>(word);
  }
}

void widen(TokenType type, std::span<const std::byte> bytes, std::int64_t* out) {
  switch (type) {
    case TokenType::uint8:
      return widen<std::uint8_t>(bytes, out);
    case TokenType::int8:
      return widen<std::int8_t>(bytes, out);
    case TokenType::uint16:
      return widen<std::uint16_t>(bytes, out);
    case TokenType::int16:
      return widen<std::int16_t>(bytes, out);
    case TokenType::uint32:
      return widen<std::uint32_t>(bytes, out);
    case TokenType::int32:
      return widen<std::int32_t>(bytes, out);
    case TokenType::int64:
      return widen<std::int64_t>(bytes, out);
  }
}

class TokenDataset : public Dataset {
 public:
  TokenDataset(Stream stream, std::uint64_t context) : stream_(std::move(stream)), context_(context) {}

  std::uint64_t size() const override { return stream_.samples(context_); }

  Batch gather(std::span<const std::uint64_t> indices) const override {
    std::vector<std::int64_t> inputs(indices.size() * context_);
    std::vector<std::int64_t> targets(inputs.size());
    const std::size_t width = bytes_of(stream_.type);
    std::int64_t* input = inputs.data();
    std::int64_t* target = targets.data();
    for (const std::uint64_t index : indices) {
      TW_CHECK(index < size());
      const auto sample = stream_.bytes().subspan(index * context_ * width, (context_ + 1) * width);
      widen(stream_.type, sample.first(context_ * width), std::exchange(input, input + context_));
      widen(stream_.type, sample.last(context_ * width), std::exchange(target, target + context_));
    }
    const std::vector<std::uint64_t> shape = {indices.size(), context_};
    return {{shape, std::move(inputs)}, {shape, std::move(targets)}};
  }

 private:
  Stream stream_;
  std::uint64_t context_;
};

Result<Stream> open_raw(const std::string& path, TokenType type) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  const std::size_t size = file.value()->bytes().size(), width = bytes_of(type);
  if (size % width != 0)
    return Error{fmt::format("{}: expected {} tokens of {} bytes each, found {} bytes", path, name_of(type),
                             width, size)};
  return Stream{std::move(file).value(), type, 0, size / width};
}

Result<Stream> open_megatron(const std::string& path) {
  const std::filesystem::path given(path);
  if (given.extension() != ".bin" && given.extension() != ".idx")
    return Error{fmt::format("{}: expected the .bin or the .idx file of a Megatron data set", path)};
  const std::string index_path = std::filesystem::path(given).replace_extension(".idx").string();
  const std::string tokens_path = std::filesystem::path(given).replace_extension(".bin").string();
  const auto index_file = MappedFile::open(index_path);
  if (!index_file) return index_file.error();
  const auto index = read_megatron_index(index_file.value()->bytes());
  if (!index) return Error{fmt::format("{}: {}", index_path, index.error().message)};
  auto stream = open_raw(tokens_path, index.value().type);
  if (stream && stream.value().count != index.value().tokens)
    return Error{fmt::format("{}: {} tokens, while {} says {}", tokens_path, stream.value().count, index_path,
                             index.value().tokens)};
  return stream;
}

/// Evenly spaced pieces of the data, in which a change is likely to show: reading hundreds of gigabytes
/// before each start would take longer than training on some of them.
std::string print_of(const Stream& stream) {
  constexpr std::size_t kPieces = 256, kPieceBytes = 4096;
  const std::span<const std::byte> all = stream.bytes();
  std::string pieces;
  const auto add = [&](std::size_t first, std::size_t count) {
    pieces.append(reinterpret_cast<const char*>(all.data()) + first, count);
  };
  if (all.size() <= kPieces * kPieceBytes) {
    add(0, all.size());
  } else {
    const std::size_t last = all.size() - kPieceBytes;
    for (std::size_t i = 0; i < kPieces; ++i) add(i * last / (kPieces - 1), kPieceBytes);
  }
  return fmt::format("{} {} tokens, digest {}", stream.count, name_of(stream.type),
                     to_string(digest_of(pieces)));
}

Error too_short(const std::string& path, const Stream& part, const char* purpose, std::uint64_t context) {
  return Error{fmt::format("{}: {} tokens for {}, expected at least {} (context + 1)", path, part.count,
                           purpose, context + 1)};
}

}  // namespace

Result<TokenCorpus> open_token_corpus(const TokenFiles& files, std::uint64_t context, double test_share) {
  TW_CHECK(context > 0 && test_share >= 0 && test_share < 1);
  const auto open = [&](const std::string& path) {
    return files.megatron ? open_megatron(path) : open_raw(path, files.type);
  };
  auto whole = open(files.training);
  if (!whole) return whole.error();
  Stream training = std::move(whole).value();
  std::optional<Stream> evaluation;
  const std::string& other = files.evaluation.empty() ? files.training : files.evaluation;
  if (!files.evaluation.empty()) {
    auto tokens = open(files.evaluation);
    if (!tokens) return tokens.error();
    evaluation = std::move(tokens).value();
  } else if (test_share > 0) {
    const auto tail = static_cast<std::uint64_t>(static_cast<double>(training.count) * test_share);
    evaluation = training.part(training.count - tail, tail);
    training = training.part(0, training.count - tail);
  }
  if (training.samples(context) == 0) return too_short(files.training, training, "training", context);
  if (evaluation && evaluation->samples(context) == 0)
    return too_short(other, *evaluation, "evaluation", context);
  TokenCorpus corpus{.print = print_of(training)};
  corpus.training = std::make_unique<TokenDataset>(std::move(training), context);
  if (evaluation) corpus.evaluation = std::make_unique<TokenDataset>(*std::move(evaluation), context);
  return corpus;
}

}  // namespace tw::data
