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

// Each part lists only what has an effect, so that a leftover setting keeps nobody out. A key that came later
// is listed where a run is not as it was without it, so that runs keep their names. Doubles are printed with
// as many digits as tell them apart.

std::string optimizer_text(const OptimizerOptions& o) {
  if (o.kind == OptimizerKind::sgd)
    return fmt::format("sgd momentum={} weight_decay={}{}", o.momentum, o.weight_decay,
                       o.nesterov || o.momentum == 0 ? "" : " nesterov=false");
  return fmt::format("{} beta1={} beta2={} epsilon={} weight_decay={}", name_of(o.kind), o.beta1, o.beta2,
                     o.epsilon, o.weight_decay);
}

/// Runs keep their names: once there were rounds of warm-up.
std::string schedule_text(const RunOptions& options) {
  return fmt::format("learning_rate={} warmup_rounds=0", options.learning_rate);
}

std::string mode_text(const ModeOptions& mode) {
  const std::string name(name_of(mode.kind));
  return mode.kind == Mode::streaming ? fmt::format("{} fragments={}", name, mode.fragments) : name;
}

std::string batch_text(const RunOptions& options) {
  if (options.batch.size) return fmt::to_string(*options.batch.size);
  return fmt::format("auto from {} to {}", options.batch.bounds.least, options.batch.bounds.most);
}

/// What the digest is of.
std::string settings_text(const RunOptions& options, std::uint64_t parameter_count) {
  return fmt::format(
      "model={} parameters={}\ndata={}\nbatch={} microbatch={} codec={}{}{}{}{}{}{}{} seed={}\n{}\n{}\n",
      options.model, parameter_count, options.data, batch_text(options), options.microbatch,
      name_of(options.codec),
      options.mode.kind == Mode::sync ? "" : fmt::format(" {}", mode_text(options.mode)),
      options.dithers() ? " stochastic" : "", options.feeds_back() ? " error_feedback" : "",
      options.exact_batches ? " exact_batches" : "",
      options.norm_cap == 0 ? "" : fmt::format(" norm_cap={}", options.norm_cap),
      options.clip_norm == 0 ? "" : fmt::format(" clip_norm={}", options.clip_norm),
      options.mode.digest_every == 1 ? "" : fmt::format(" digest_every={}", options.mode.digest_every),
      options.seed, optimizer_text(options.optimizer), schedule_text(options));
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
  facts = {"model=" + options.model,
           fmt::format("batch={}", batch_text(options)),
           fmt::format("microbatch={}", options.microbatch),
           fmt::format("codec={}", name_of(options.codec)),
           fmt::format("mode={} digest_every={}", mode_text(options.mode), options.mode.digest_every),
           fmt::format("rounding={}", options.dithers() ? "stochastic" : "nearest"),
           fmt::format("error_feedback={}", options.feeds_back()),
           fmt::format("exact_batches={}", options.exact_batches),
           fmt::format("norm_cap={}", options.norm_cap),
           fmt::format("clip_norm={}", options.clip_norm),
           fmt::format("seed={}", options.seed),
           "data: " + options.data,
           "optimizer: " + optimizer_text(options.optimizer),
           "schedule: " + schedule_text(options)};
}

/// What ends the run, which is no part of what it is.
std::string end_text(const RunOptions& options) {
  std::string text = fmt::format("rounds={}", options.rounds);
  if (options.budget.drains()) text += fmt::format(" budget_usd={}", *options.budget.usd);
  return text;
}

}  // namespace

RunFacts::RunFacts(const RunOptions& options, std::uint64_t parameter_count) {
  add_settings(options, facts_);
  words_ = {.layout = options.layout,
            .facts = fmt::format("{}", fmt::join(facts_, "\n")),
            .end = end_text(options)};
  if (options.has_own_model()) add_lines(options.layout, facts_);
  const std::string settings = settings_text(options, parameter_count);
  const std::string layout = options.has_own_model() ? "layout=" + options.layout + "\n" : "";
  digest_ = digest_of(settings + layout);
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
