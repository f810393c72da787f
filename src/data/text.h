// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "data/dataset.h"

namespace tw::data {

/// A text file as language-model samples. Sample i of a part is its bytes [i * context, i * context +
/// context]: the first `context` are the inputs, the last `context` the targets, both int64 of shape
/// [samples, context].
struct TextCorpus {
  std::unique_ptr<Dataset> training;    ///< the beginning of the file
  std::unique_ptr<Dataset> evaluation;  ///< its tail; nullptr when test_share is 0
};

/// The last `test_share` of the bytes, in [0, 1), is for evaluation. Each part must hold at least one sample.
Result<TextCorpus> open_text_corpus(const std::string& path, std::uint64_t context, double test_share);

}  // namespace tw::data
