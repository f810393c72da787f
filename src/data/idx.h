// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"

namespace tw::data {

/// Element types of the IDX format with their codes (Y. LeCun, "The MNIST database", file formats).
enum class IdxType : std::uint8_t {
  uint8 = 0x08,
  int8 = 0x09,
  int16 = 0x0b,
  int32 = 0x0c,
  float32 = 0x0d,
  float64 = 0x0e,
};

/// An IDX file in memory. The elements keep the file's big-endian bytes: a sample is converted when it is
/// used.
struct IdxTensor {
  IdxType type = IdxType::uint8;
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> elements;
};

/// Errors name the path, what was expected and what was found.
Result<IdxTensor> read_idx(const std::string& path);

/// Two IDX files whose first dimension counts the samples. As inputs, uint8 becomes float in [0, 1] (divided
/// by 255); as targets, uint8 becomes int64. Elsewhere the other integers become int64, and float32 and
/// float64 become float.
Result<std::unique_ptr<Dataset>> open_idx_dataset(const std::string& inputs_path,
                                                  const std::string& targets_path);

}  // namespace tw::data
