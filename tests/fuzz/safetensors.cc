// SPDX-License-Identifier: Apache-2.0
#include "data/safetensors.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "fuzz/target.h"

namespace tw::fuzz {
namespace {

std::string any_header(Input& input) {
  static const std::vector<std::string> kWords = {
      "{",
      "}",
      "[",
      "]",
      ":",
      ",",
      "\"a\"",
      "\"b\"",
      "\"dtype\":\"F32\"",
      "\"dtype\":\"BF16\"",
      "\"dtype\":\"X\"",
      "\"shape\":[1]",
      "\"shape\":[]",
      "\"shape\":[4294967296,4294967296]",
      "\"data_offsets\":[0,4]",
      "\"data_offsets\":[4,8]",
      "\"data_offsets\":[18446744073709551615,0]",
      "\"__metadata__\":{\"format\":\"pt\"}",
      "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}",
      "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[4,8]}",
      "-1",
      "null",
      " "};
  std::string header = input.one_in(8) ? "" : "{";
  while (!input.empty() && header.size() < 2000) {
    if (input.one_in(8)) {
      header += static_cast<char>(input.byte());
    } else {
      header += input.one_of(kWords);
    }
  }
  return header;
}

std::string with_length(const std::string& header, std::size_t data) {
  std::string file;
  for (std::size_t i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i));
  return file + header + std::string(data, '\0');
}

/// The tensors are all that follows the header; those of float32 alone come back when they are written.
void check_header(std::span<const std::byte> file) {
  const auto header = data::read_safetensors_header(file);
  if (!header) return;
  std::uint64_t next = 0;
  std::vector<data::TensorShape> shapes;
  for (const data::StoredTensor& tensor : header.value().tensors) {
    TW_CHECK(tensor.first == next);
    next += tensor.bytes;
    shapes.push_back({tensor.name, tensor.shape});
  }
  TW_CHECK(header.value().bytes + next == file.size());
  const auto is_float = [](const data::StoredTensor& tensor) { return tensor.type == "F32"; };
  if (!std::ranges::all_of(header.value().tensors, is_float)) return;
  const std::string written = data::safetensors_header(shapes, {}) + std::string(next, '\0');
  const auto again = data::read_safetensors_header(std::as_bytes(std::span(written)));
  TW_CHECK(again && again.value().tensors == header.value().tensors);
}

}  // namespace

void safetensors(Input& input) {
  if (input.one_in(4)) return check_header(std::as_bytes(std::span(input.rest())));
  const std::size_t data = 4 * input.below(4);
  const std::string file = with_length(any_header(input), data);
  check_header(std::as_bytes(std::span(file)));
}

}  // namespace tw::fuzz
