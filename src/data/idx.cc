// SPDX-License-Identifier: Apache-2.0
#include "data/idx.h"

#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <utility>

namespace tw::data {
namespace {

constexpr std::size_t kMagicBytes = 4;

/// 0 for an unknown code.
std::size_t element_bytes(std::uint8_t code) {
  switch (IdxType{code}) {
    case IdxType::uint8:
    case IdxType::int8:
      return 1;
    case IdxType::int16:
      return 2;
    case IdxType::int32:
    case IdxType::float32:
      return 4;
    case IdxType::float64:
      return 8;
  }
  return 0;
}

template <class Word>
Word big_endian(const std::byte* at) {
  Word word = 0;
  for (std::size_t i = 0; i < sizeof(Word); ++i) {
    word = static_cast<Word>(word << 8U) | static_cast<Word>(std::to_integer<std::uint8_t>(at[i]));
  }
  return word;
}

/// Number of elements; nothing if no file can hold that many.
std::optional<std::uint64_t> product(const std::vector<std::uint64_t>& shape) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 56U;
  std::uint64_t n = 1;
  for (const std::uint64_t extent : shape) {
    if (extent != 0 && n > kMost / extent) return std::nullopt;
    n *= extent;
  }
  return n;
}

/// Appends elements of `Word`'s width, read as `As` and converted to `Out`.
template <class Word, class As, class Out>
void append(std::span<const std::byte> elements, std::vector<Out>& out) {
  for (std::size_t i = 0; i < elements.size(); i += sizeof(Word)) {
    out.push_back(static_cast<Out>(std::bit_cast<As>(big_endian<Word>(elements.data() + i))));
  }
}

void append_integers(IdxType type, std::span<const std::byte> elements, std::vector<std::int64_t>& out) {
  switch (type) {
    case IdxType::uint8:
      return append<std::uint8_t, std::uint8_t>(elements, out);
    case IdxType::int8:
      return append<std::uint8_t, std::int8_t>(elements, out);
    case IdxType::int16:
      return append<std::uint16_t, std::int16_t>(elements, out);
    case IdxType::int32:
      return append<std::uint32_t, std::int32_t>(elements, out);
    case IdxType::float32:
    case IdxType::float64:
      break;
  }
  TW_CHECK(!"an integer type");
}

void append_floats(IdxType type, std::span<const std::byte> elements, std::vector<float>& out) {
  if (type == IdxType::float32) return append<std::uint32_t, float>(elements, out);
  if (type == IdxType::float64) return append<std::uint64_t, double>(elements, out);
  TW_CHECK(type == IdxType::uint8);
  for (const std::byte b : elements) out.push_back(static_cast<float>(std::to_integer<int>(b)) / 255.0F);
}

enum class Role : std::uint8_t { inputs, targets };

Array gather_rows(const IdxTensor& tensor, Role role, std::span<const std::uint64_t> indices) {
  const std::size_t row_bytes = tensor.elements.size() / tensor.shape[0];
  const bool real = tensor.type == IdxType::float32 || tensor.type == IdxType::float64;
  const bool picture = tensor.type == IdxType::uint8 && role == Role::inputs;
  std::vector<float> floats;
  std::vector<std::int64_t> integers;
  const std::size_t values =
      indices.size() * row_bytes / element_bytes(static_cast<std::uint8_t>(tensor.type));
  if (real || picture) {
    floats.reserve(values);
  } else {
    integers.reserve(values);
  }
  for (const std::uint64_t index : indices) {
    TW_CHECK(index < tensor.shape[0]);
    const std::span row(tensor.elements.data() + index * row_bytes, row_bytes);
    if (real || picture) {
      append_floats(tensor.type, row, floats);
    } else {
      append_integers(tensor.type, row, integers);
    }
  }
  Array array{.shape = tensor.shape};
  array.shape[0] = indices.size();
  if (real || picture) {
    array.values = std::move(floats);
  } else {
    array.values = std::move(integers);
  }
  return array;
}

class IdxDataset : public Dataset {
 public:
  IdxDataset(IdxTensor inputs, IdxTensor targets)
      : inputs_(std::move(inputs)), targets_(std::move(targets)) {}

  std::uint64_t size() const override { return inputs_.shape[0]; }

  Batch gather(std::span<const std::uint64_t> indices) const override {
    return {gather_rows(inputs_, Role::inputs, indices), gather_rows(targets_, Role::targets, indices)};
  }

 private:
  IdxTensor inputs_;
  IdxTensor targets_;
};

bool read_exactly(std::ifstream& file, std::span<std::byte> out) {
  return static_cast<bool>(
      file.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size())));
}

}  // namespace

Result<IdxTensor> read_idx(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    return Error{fmt::format("{}: cannot be opened: expected a regular file", path)};
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return Error{fmt::format("{}: cannot be opened: {}", path, std::strerror(errno))};
  const auto file_bytes = static_cast<std::uint64_t>(std::streamoff{file.tellg()});
  file.seekg(0);

  std::byte magic[kMagicBytes] = {};
  if (!read_exactly(file, magic)) {
    return Error{fmt::format("{}: not an IDX file: it ends within the first {} bytes", path, kMagicBytes)};
  }
  const auto code = std::to_integer<std::uint8_t>(magic[2]);
  const auto rank = std::to_integer<std::uint8_t>(magic[3]);
  const std::size_t width = element_bytes(code);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || width == 0 || rank == 0) {
    return Error{
        fmt::format("{}: not an IDX file: expected 0000, a type code (08 09 0b 0c 0d 0e) and a rank of at "
                    "least 1, found {:08x}{}",
                    path, big_endian<std::uint32_t>(magic),
                    magic[0] == std::byte{0x1f} ? " (gzip: unpack it first)" : "")};
  }
  std::vector<std::byte> extents(std::size_t{4} * rank);
  if (!read_exactly(file, extents)) {
    return Error{fmt::format("{}: truncated: the header of rank {} needs {} bytes, the file has {}", path,
                             rank, kMagicBytes + extents.size(), file_bytes)};
  }
  IdxTensor tensor{.type = IdxType{code}};
  for (std::size_t i = 0; i < rank; ++i) tensor.shape.push_back(big_endian<std::uint32_t>(&extents[4 * i]));

  const std::uint64_t header_bytes = kMagicBytes + extents.size();
  const std::optional<std::uint64_t> elements = product(tensor.shape);
  if (!elements || header_bytes + *elements * width != file_bytes) {
    return Error{
        fmt::format("{}: shape [{}] of {}-byte elements needs {} bytes, the file has {}{}", path,
                    fmt::join(tensor.shape, ", "), width,
                    elements ? fmt::to_string(header_bytes + *elements * width) : "too many", file_bytes,
                    !elements || header_bytes + *elements * width > file_bytes ? " (truncated)" : "")};
  }
  tensor.elements.resize(*elements * width);
  if (!read_exactly(file, tensor.elements)) return Error{fmt::format("{}: cannot be read to its end", path)};
  return tensor;
}

Result<std::unique_ptr<Dataset>> open_idx_dataset(const std::string& inputs_path,
                                                  const std::string& targets_path) {
  Result<IdxTensor> inputs = read_idx(inputs_path);
  if (!inputs) return inputs.error();
  Result<IdxTensor> targets = read_idx(targets_path);
  if (!targets) return targets.error();
  const std::uint64_t samples = inputs.value().shape[0];
  if (samples != targets.value().shape[0]) {
    return Error{fmt::format("{} has {} samples, but {} has {}", inputs_path, samples, targets_path,
                             targets.value().shape[0])};
  }
  if (inputs.value().elements.empty() || targets.value().elements.empty()) {
    return Error{fmt::format("{}, {}: no samples", inputs_path, targets_path)};
  }
  return std::unique_ptr<Dataset>(
      std::make_unique<IdxDataset>(std::move(inputs).value(), std::move(targets).value()));
}

}  // namespace tw::data
