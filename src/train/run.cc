// SPDX-License-Identifier: Apache-2.0
#include "train/run.h"

#include <fmt/format.h>

#include <string>

#include "train/run_names.h"

namespace tw::train {
namespace {

// Each part lists only what has an effect, so that a leftover setting keeps nobody out. A key that came
// later is listed where it is not the default, so that runs keep their names. Doubles are printed
// with as many digits as tell them apart.

std::string data_text(const DataOptions& data) {
  if (data.kind == DataKind::own) return "own";
  if (data.kind == DataKind::idx) return "idx";
  return fmt::format("text context={} test_share={}", data.context, data.test_share);
}

std::string optimizer_text(const OptimizerOptions& o) {
  if (o.kind == OptimizerKind::sgd)
    return fmt::format("sgd momentum={} weight_decay={}{}", o.momentum, o.weight_decay,
                       o.nesterov || o.momentum == 0 ? "" : " nesterov=false");
  return fmt::format("{} beta1={} beta2={} epsilon={} weight_decay={}", name_of(o.kind), o.beta1, o.beta2,
                     o.epsilon, o.weight_decay);
}

std::string schedule_text(const ScheduleOptions& s, Round rounds) {
  std::string text = fmt::format("learning_rate={} warmup_rounds={}", s.learning_rate, s.warmup_rounds);
  if (s.kind == ScheduleKind::constant) return text;
  return fmt::format("{} {} total_rounds={} final_share={}", text,
                     s.kind == ScheduleKind::linear ? "linear" : "cosine",
                     s.total_rounds == 0 ? rounds : s.total_rounds, s.final_share);
}

}  // namespace

Digest run_digest(const RunOptions& options, std::uint64_t parameter_count) {
  // A TorchScript file may lie elsewhere on every peer: it is known by its parameter count alone.
  const std::string layout = options.has_own_model() ? "layout=" + options.layout + "\n" : "";
  const bool built_in = options.model == "mnist-cnn" || options.model == "char-transformer";
  const std::string model = built_in || options.has_own_model() ? options.model : "file";
  return digest_of(fmt::format(
      "model={} parameters={}\ndata={}\nbatch={} microbatch={} codec={}{}{}{}{}{} seed={}\n{}\n{}\n{}", model,
      parameter_count, data_text(options.data), options.target_batch_size, options.microbatch,
      name_of(options.codec), options.dithers() ? " stochastic" : "",
      options.feeds_back() ? " error_feedback" : "", options.exact_batches ? " exact_batches" : "",
      options.norm_cap == 0 ? "" : fmt::format(" norm_cap={}", options.norm_cap),
      options.clip_norm == 0 ? "" : fmt::format(" clip_norm={}", options.clip_norm), options.seed,
      optimizer_text(options.optimizer), schedule_text(options.schedule, options.rounds), layout));
}

}  // namespace tw::train
