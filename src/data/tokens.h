// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "data/dataset.h"
#include "data/megatron.h"

namespace tw::data {

/// Files of tokens. Raw files hold only tokens, as nanoGPT's prepare.py writes them; a Megatron data set is
/// two files, PREFIX.bin and PREFIX.idx, and either name will do.
struct TokenFiles {
  std::string training;
  std::string evaluation;  ///< empty: the tail of the training file
  bool megatron = false;
  TokenType type = TokenType::uint16;  ///< raw files; uint16 or uint32
};

/// Tokens as language-model samples. Sample i of a part is its tokens [i * context, i * context + context]:
/// the first `context` are the inputs, the last `context` the targets, both int64 of shape [samples,
/// context]. Document ends are tokens like others. The files are mapped, not read.
struct TokenCorpus {
  std::unique_ptr<Dataset> training;
  std::unique_ptr<Dataset> evaluation;  ///< nullptr: neither a file nor a share is given
  /// Identifies the training part: "12345 uint16 tokens, digest 0f..." of pieces over all of it.
  std::string print;
};

/// test_share: share of the tokens at the end of the training file, in [0, 1); ignored if there is an
/// evaluation file. Each part must hold at least one sample.
Result<TokenCorpus> open_token_corpus(const TokenFiles& files, std::uint64_t context, double test_share);

}  // namespace tw::data
