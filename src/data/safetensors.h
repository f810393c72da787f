// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// Parameter files that other programs can read: huggingface.co/docs/safetensors. Pure functions.
namespace tw::data {

/// A tensor in row-major order: float32, or int64 for counters.
struct TensorShape {
  std::string name;
  std::vector<std::uint64_t> shape;  ///< none: one number
  bool whole = false;                ///< int64
  bool inner = false;                ///< part of the flat vector alone: files leave it out

  /// Number of its values.
  std::uint64_t count() const;

  bool operator==(const TensorShape&) const = default;
};

/// A tensor of a file.
struct StoredTensor {
  std::string name;
  std::string type;  ///< "F32", "BF16", "I64", ...
  std::vector<std::uint64_t> shape;
  std::uint64_t first = 0;  ///< bytes from the end of the header on
  std::uint64_t bytes = 0;

  bool operator==(const StoredTensor&) const = default;
};

struct SafetensorsHeader {
  std::uint64_t bytes = 0;            ///< before the first tensor
  std::vector<StoredTensor> tensors;  ///< by their positions, which leave no gap and end with the file
};

/// No header is longer (as in the safetensors library).
inline constexpr std::uint64_t kMostSafetensorsHeader = 100'000'000;

/// Reads the header at the beginning of a file. The error says what was expected, and of which tensor.
Result<SafetensorsHeader> read_safetensors_header(std::span<const std::byte> file);

/// "(10, 20)", "(10)", "()".
std::string shape_text(std::span<const std::uint64_t> shape);

/// The header of a file; the tensors follow in this order, without gaps or inner ones. Their names must
/// differ.
std::string safetensors_header(const std::vector<TensorShape>& tensors,
                               const std::map<std::string, std::string>& metadata);

/// Reads tensors from a layout (train::RunOptions::layout), such as "group 0: fc.weight (10, 20) float32";
/// lines without a tensor are skipped. Integers become int64, all others float32. "led: " and "updates: "
/// begin an inner one. The error quotes the line.
Result<std::vector<TensorShape>> tensors_in_layout(std::string_view layout);

}  // namespace tw::data
