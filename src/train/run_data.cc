// SPDX-License-Identifier: Apache-2.0
#include "train/run_data.h"

#include <utility>

#include "data/idx.h"
#include "data/text.h"

namespace tw::train {

Result<RunData> open_run_data(const DataOptions& options) {
  if (options.kind == DataKind::own) {
    return Error{
        "model own: a program with a training loop of its own brings model and data (docs/python.md); tw "
        "train "
        "needs a built-in model or a TorchScript file"};
  }
  if (options.kind == DataKind::text) {
    Result<data::TextCorpus> corpus =
        data::open_text_corpus(options.text, options.context, options.test_share);
    if (!corpus) return corpus.error();
    return RunData{std::move(corpus.value().training), std::move(corpus.value().evaluation)};
  }
  Result<std::unique_ptr<data::Dataset>> training =
      data::open_idx_dataset(options.train_inputs, options.train_targets);
  if (!training) return training.error();
  if (options.test_inputs.empty()) return RunData{std::move(training).value(), nullptr};
  Result<std::unique_ptr<data::Dataset>> evaluation =
      data::open_idx_dataset(options.test_inputs, options.test_targets);
  if (!evaluation) return evaluation.error();
  return RunData{std::move(training).value(), std::move(evaluation).value()};
}

}  // namespace tw::train
