// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "train/run/run_names.h"
#include "wire/limits.h"

namespace tw::train {
namespace {

// Each part lists only what has an effect, so that a leftover setting keeps nobody out. (buffers=leader is
// listed for any model: its first pass tells whether it has such buffers.) A key that came later is listed
// where it is not the default, so that runs keep their names. Doubles are printed with as many digits as tell
// them apart.

std::string shards_text(const ShardData& data) {
  std::string text =
      fmt::format("shards index={} inputs={} targets={} shuffle={}", data.identity, data.inputs, data.targets,
                  names_of(data.shuffle)[static_cast<std::size_t>(data.shuffle)]);
  if (data.shuffle == Shuffle::blocks && data.block != 0) text += fmt::format(" block={}", data.block);
  if (data.image != 0)
    text += fmt::format(" image={}{}", data.image, data.crop == Crop::random ? " crop=random" : "");
  if (data.channels != 0) text += fmt::format(" channels={}", data.channels);
  return text + (data.flip ? " flip" : "");
}

std::string data_text(const DataOptions& data) {
  if (data.kind == DataKind::shards) return shards_text(data.shards);
  if (data.kind == DataKind::own) return "own";
  if (data.kind == DataKind::idx) return "idx";
  if (data.kind == DataKind::tokens || data.kind == DataKind::megatron)
    return fmt::format("tokens context={}", data.context);  // which ones: RunOptions::sources
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

// A TorchScript file may lie elsewhere on every peer: it is known by its parameter count alone.
std::string model_name(const RunOptions& options) {
  const bool built_in = options.model == "mnist-cnn" || options.model == "char-transformer";
  return built_in || options.has_own_model() ? options.model : "file";
}

std::string_view buffers_text(const RunOptions& options) {
  return options.buffers == BufferUse::leader ? " buffers=leader" : "";
}

/// What the digest is of.
std::string settings_text(const RunOptions& options, std::uint64_t parameter_count) {
  return fmt::format(
      "model={} parameters={}\ndata={}\nbatch={} microbatch={} codec={}{}{}{}{}{}{} seed={}\n{}\n{}\n",
      model_name(options), parameter_count, data_text(options.data), options.target_batch_size,
      options.microbatch, name_of(options.codec), options.dithers() ? " stochastic" : "",
      options.feeds_back() ? " error_feedback" : "", options.exact_batches ? " exact_batches" : "",
      options.norm_cap == 0 ? "" : fmt::format(" norm_cap={}", options.norm_cap),
      options.clip_norm == 0 ? "" : fmt::format(" clip_norm={}", options.clip_norm), buffers_text(options),
      options.seed, optimizer_text(options.optimizer), schedule_text(options.schedule, options.rounds));
}

void add_lines(std::string_view text, std::vector<std::string>& facts) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end != 0) facts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// The same as settings_text, but for the number of parameters; each has its place, whether set or not.
void add_settings(const RunOptions& options, std::vector<std::string>& facts) {
  facts = {"model=" + model_name(options),
           fmt::format("batch={}", options.target_batch_size),
           fmt::format("microbatch={}{}", options.microbatch, buffers_text(options)),
           fmt::format("codec={}", name_of(options.codec)),
           fmt::format("rounding={}", options.dithers() ? "stochastic" : "nearest"),
           fmt::format("error_feedback={}", options.feeds_back()),
           fmt::format("exact_batches={}", options.exact_batches),
           fmt::format("norm_cap={}", options.norm_cap),
           fmt::format("clip_norm={}", options.clip_norm),
           fmt::format("seed={}", options.seed),
           "data: " + data_text(options.data),
           "optimizer: " + optimizer_text(options.optimizer),
           "schedule: " + schedule_text(options.schedule, options.rounds)};
}

/// What ends the run, which is no part of what it is.
std::string end_text(const RunOptions& options) {
  std::string text = fmt::format("rounds={}", options.rounds);
  if (options.budget.usd && options.budget.action == BudgetAction::drain)
    text += fmt::format(" budget_usd={}", *options.budget.usd);
  if (options.evaluation.stop_accuracy)
    text += fmt::format(" stop_accuracy={}", *options.evaluation.stop_accuracy);
  return text;
}

}  // namespace

RunFacts::RunFacts(const RunOptions& options, std::uint64_t parameter_count) {
  add_settings(options, facts_);
  add_lines(options.sources, facts_);
  words_ = {.layout = options.layout,
            .facts = fmt::format("{}", fmt::join(facts_, "\n")),
            .end = end_text(options)};
  if (options.has_own_model()) add_lines(options.layout, facts_);
  const std::string settings = settings_text(options, parameter_count);
  const std::string layout = options.has_own_model() ? "layout=" + options.layout + "\n" : "";
  const std::string sources = options.sources.empty() ? "" : "sources=" + options.sources + "\n";
  digest_ = digest_of(settings + sources + layout);
  for (const std::string& fact : facts_) {
    if (prints_.size() == wire::kMostFacts) break;
    prints_.push_back(static_cast<std::uint32_t>(digest_of(fact).low));
  }
}

std::uint32_t RunFacts::first_difference(const std::vector<std::uint32_t>& theirs) const {
  const auto [here, there] = std::ranges::mismatch(prints_, theirs);
  if (here == prints_.end() && there == theirs.end()) return 0;
  return static_cast<std::uint32_t>(here - prints_.begin()) + 1;
}

std::string RunFacts::at(std::uint32_t place) const {
  if (place == 0 || place > facts_.size()) return "nothing";
  return '"' + facts_[place - 1] + '"';
}

}  // namespace tw::train
