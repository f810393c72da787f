// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// Files of parameters that other programs read: huggingface.co/docs/safetensors. Pure.
namespace tw::data {

/// A float32 tensor in row-major order.
struct TensorShape {
  std::string name;
  std::vector<std::uint64_t> shape;  ///< none: one number

  /// How many values it has.
  std::uint64_t count() const;

  bool operator==(const TensorShape&) const = default;
};

/// What the file begins with; the tensors follow in this order, without gaps. Their names differ.
std::string safetensors_header(const std::vector<TensorShape>& tensors,
                               const std::map<std::string, std::string>& metadata);

/// "group 0: fc.weight (10, 20) float32": the tensors in a layout (train::RunOptions::layout); lines that
/// name none are left out. The error quotes the line.
Result<std::vector<TensorShape>> tensors_in_layout(std::string_view layout);

}  // namespace tw::data
