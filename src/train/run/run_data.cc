// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_data.h"

#include <utility>

#include "data/idx.h"
#include "data/shards/shard_dataset.h"
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

data::ShardOptions shard_options(const ShardData& data, const DataDoors& doors) {
  data::ShardOptions options{.index = data.index,
                             .inputs = data.inputs,
                             .targets = data.targets,
                             .threads = doors.decoders,
                             .memory_bytes = data.memory,
                             .most_broken = data.skip_broken,
                             .now = doors.now};
  options.picture.size = static_cast<std::uint32_t>(data.image);
  options.picture.channels = static_cast<std::uint32_t>(data.channels);
  options.picture.random_crop = data.crop == Crop::random;
  options.picture.flip = data.flip;
  return options;
}

Result<RunData> open_shards(const ShardData& data, const DataDoors& doors) {
  if (doors.store == nullptr) return Error{"data.kind shards: there is no store to read from"};
  data::ShardOptions options = shard_options(data, doors);
  auto training = data::open_shard_dataset(options, *doors.store);
  if (!training) return training.error();
  if (data.test_index.empty()) return RunData{std::move(training).value(), nullptr};
  options.index = data.test_index;
  options.picture.random_crop = options.picture.flip = false;
  auto evaluation = data::open_shard_dataset(options, *doors.store);
  if (!evaluation) return evaluation.error();
  return RunData{std::move(training).value(), std::move(evaluation).value()};
}

}  // namespace

Result<RunData> open_run_data(const DataOptions& options, const DataDoors& doors) {
  if (options.kind == DataKind::shards) return open_shards(options.shards, doors);
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
