// SPDX-License-Identifier: Apache-2.0
#include "train/run_data.h"

#include <utility>

#include "data/idx.h"
#include "data/text.h"
#include "data/tokens.h"

namespace tw::train {

namespace {

Result<RunData> open_tokens(const DataOptions& options) {
  const data::TokenFiles files{
      .training = options.tokens,
      .evaluation = options.test_tokens,
      .megatron = options.kind == DataKind::megatron,
      .type = options.token_type == RawToken::uint16 ? data::TokenType::uint16 : data::TokenType::uint32};
  Result<data::TokenCorpus> corpus = data::open_token_corpus(files, options.context, options.test_share);
  if (!corpus) return corpus.error();
  data::TokenCorpus& parts = corpus.value();
  return RunData{std::move(parts.training), std::move(parts.evaluation), std::move(parts.print)};
}

}  // namespace

Result<RunData> open_run_data(const DataOptions& options) {
  if (options.kind == DataKind::own) {
    return Error{
        "model own: a program with a training loop of its own brings model and data (docs/python.md); tw "
        "train "
        "needs a built-in model or a TorchScript file"};
  }
  if (options.kind == DataKind::tokens || options.kind == DataKind::megatron) return open_tokens(options);
  if (options.kind == DataKind::text) {
    Result<data::TextCorpus> corpus =
        data::open_text_corpus(options.text, options.context, options.test_share);
    if (!corpus) return corpus.error();
    return RunData{std::move(corpus.value().training), std::move(corpus.value().evaluation), {}};
  }
  Result<std::unique_ptr<data::Dataset>> training =
      data::open_idx_dataset(options.train_inputs, options.train_targets);
  if (!training) return training.error();
  if (options.test_inputs.empty()) return RunData{std::move(training).value(), nullptr, {}};
  Result<std::unique_ptr<data::Dataset>> evaluation =
      data::open_idx_dataset(options.test_inputs, options.test_targets);
  if (!evaluation) return evaluation.error();
  return RunData{std::move(training).value(), std::move(evaluation).value(), {}};
}

}  // namespace tw::train
