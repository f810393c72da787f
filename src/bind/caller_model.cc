// SPDX-License-Identifier: Apache-2.0
#include "bind/caller_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/parallel.h"
#include "base/result.h"
#include "base/text/printable.h"
#include "codec/codec.h"
#include "host/system/standard_streams.h"
#include "train/learn/optimizer_kernels.h"

namespace tw::bind {
namespace {

constexpr std::size_t kMostTensors = 1 << 20;
/// Far beyond any machine, so that sums of sizes, also in bytes, stay below 2^64.
constexpr std::uint64_t kMostValues = 1ULL << 48;

std::optional<train::OptimizerKind> kind_of(std::uint32_t kind) {
  switch (kind) {
    case TW_SGD:
      return train::OptimizerKind::sgd;
    case TW_ADAM:
      return train::OptimizerKind::adam;
    case TW_ADAMW:
      return train::OptimizerKind::adamw;
    case TW_LAMB:
      return train::OptimizerKind::lamb;
    case TW_AVERAGE:
      return train::OptimizerKind::average;
    case TW_MOVING:
      return train::OptimizerKind::moving_average;
    case TW_CALLER:
      return train::OptimizerKind::outside;
    case TW_UPDATES:
      return train::OptimizerKind::updates;
    default:
      return std::nullopt;
  }
}

bool is_average(const tw_group& group) { return group.kind == TW_AVERAGE || group.kind == TW_MOVING; }

bool is_the_engines(const tw_group& group) {
  return group.kind != TW_CALLER && group.kind != TW_UPDATES && !is_average(group);
}

train::OptimizerOptions options_of(const tw_group& group) {
  return {.kind = *kind_of(group.kind),
          .momentum = group.momentum,
          .nesterov = (group.flags & TW_NESTEROV) != 0,
          .beta1 = group.beta1,
          .beta2 = group.beta2,
          .epsilon = group.epsilon,
          .weight_decay = group.weight_decay};
}

/// group: one that fault_of accepts. with_momentum: as it began.
train::GroupStep step_of(const tw_group& group, bool with_momentum) {
  train::GroupStep step{.learning_rate = group.learning_rate};
  if (group.kind == TW_SGD && with_momentum) step.momentum = group.momentum;
  if (group.kind != TW_SGD) {
    step.beta1 = group.beta1;
    step.beta2 = group.beta2;
    step.epsilon = group.epsilon;
  }
  step.weight_decay = group.weight_decay;
  return step;
}

std::string fault_of(const tw_group& group) {
  const auto share = [](double value) { return value >= 0 && value < 1; };
  const auto amount = [](double value) { return std::isfinite(value) && value >= 0; };
  if (!kind_of(group.kind)) return fmt::format("kind {}: expected a tw_kind", group.kind);
  if (group.kind == TW_MOVING && !(group.momentum >= 0 && group.momentum <= 1))
    return fmt::format("momentum {}: expected a number from 0 to 1", group.momentum);
  if ((group.flags & ~std::uint32_t{TW_NESTEROV}) != 0)
    return fmt::format("flags {}: expected a tw_flag or 0", group.flags);
  if (!is_the_engines(group)) return {};
  if (!amount(group.learning_rate))
    return fmt::format("learning rate {}: expected a number of at least 0", group.learning_rate);
  if (!amount(group.weight_decay))
    return fmt::format("weight decay {}: expected a number of at least 0", group.weight_decay);
  if (group.kind == TW_SGD)
    return share(group.momentum)
               ? std::string()
               : fmt::format("momentum {}: expected a number from 0 to below 1", group.momentum);
  if (!share(group.beta1) || !share(group.beta2))
    return fmt::format("betas {} and {}: expected numbers from 0 to below 1", group.beta1, group.beta2);
  return group.epsilon > 0 ? std::string()
                           : fmt::format("epsilon {}: expected a number above 0", group.epsilon);
}

codec::Codec codec_of(std::uint32_t dtype) {
  switch (dtype) {
    case TW_FLOAT16:
      return codec::Codec::fp16;
    case TW_BFLOAT16:
      return codec::Codec::bf16;
    default:
      return codec::Codec::fp32;
  }
}

tw_step step_of(const train::RuleStep& step, std::uint32_t kind) {
  return {.first = step.first,
          .count = step.count,
          .kind = kind,
          .flags = step.nesterov ? std::uint32_t{TW_NESTEROV} : 0,
          .learning_rate = step.learning_rate,
          .weight_decay = step.weight_decay,
          .momentum = step.momentum,
          .shrink = step.shrink,
          .beta1 = step.beta1,
          .one_minus_beta1 = step.one_minus_beta1,
          .beta2 = step.beta2,
          .one_minus_beta2 = step.one_minus_beta2,
          .correction1 = step.correction1,
          .root_correction2 = step.root_correction2,
          .epsilon = step.epsilon};
}

std::uint32_t kind_of(train::OptimizerKind kind) {
  for (std::uint32_t one = TW_SGD; one <= TW_MOVING; ++one) {
    if (kind_of(one) == kind) return one;
  }
  TW_CHECK(!"a tw_kind");
}

/// tw_calls.update, or nothing: then the engine updates.
train::UpdateElsewhere elsewhere_of(const Callbacks& callbacks) {
  if (!callbacks.has_update()) return {};
  return [callbacks](std::uint64_t round, std::span<const float> mean, std::span<const train::RuleStep> of) {
    std::vector<tw_step> steps;
    for (const train::RuleStep& step : of) steps.push_back(step_of(step, kind_of(step.kind)));
    callbacks.update(round, mean, steps);
  };
}

/// The engine's optimizer, with the program's vectors beside its buffers.
class WithVectors final : public train::Optimizer {
 public:
  WithVectors(std::unique_ptr<train::Optimizer> engine, const std::vector<std::uint64_t>& sizes)
      : engine_(std::move(engine)) {
    for (const std::uint64_t size : sizes) vectors_.emplace_back(size, 0.0F);
  }

  using train::Optimizer::apply;

  void apply(std::span<float> parameters, const train::MeanGradient& mean, std::uint64_t step,
             std::span<const train::GroupStep> groups) override {
    engine_->apply(parameters, mean, step, groups);
  }

  std::vector<std::span<float>> state() override {
    std::vector<std::span<float>> all = engine_->state();
    for (std::vector<float>& vector : vectors_) all.emplace_back(vector);
    return all;
  }

 private:
  std::unique_ptr<train::Optimizer> engine_;
  std::vector<std::vector<float>> vectors_;
};

}  // namespace

std::uint64_t CallerModel::parameters() const {
  return std::accumulate(tensor_sizes.begin(), tensor_sizes.end(), std::uint64_t{0});
}

bool CallerModel::updates_itself() const {
  return std::ranges::any_of(groups, [](const tw_group& group) { return group.kind == TW_CALLER; });
}

Status check_update(const CallerModel& model, const Callbacks& callbacks) {
  const auto is_lamb = [](const tw_group& group) { return group.kind == TW_LAMB; };
  if (model.updates_itself() && !callbacks.has_update())
    return Error{"an optimizer of the program's own needs tw_calls.update"};
  if (callbacks.has_update() && std::ranges::any_of(model.groups, is_lamb))
    return Error{"tw_calls.update: expected none with TW_LAMB, which only the engine computes"};
  return Unit{};
}

bool CallerModel::averages() const { return std::ranges::any_of(groups, is_average); }

namespace {

Status check_head(const tw_model& given) {
  if (given.group_count == 0 || given.tensor_count == 0 || given.groups == nullptr ||
      given.tensor_sizes == nullptr)
    return Error{"the model has no parameters"};
  if (given.tensor_count > kMostTensors)
    return Error{
        fmt::format("the model has {} tensors, expected {} at most", given.tensor_count, kMostTensors)};
  if (given.state_sizes == nullptr && given.state_count > 0)
    return Error{fmt::format("state_sizes: a null pointer, expected {} sizes", given.state_count)};
  if (!(std::isfinite(given.clip_norm) && given.clip_norm >= 0))
    return Error{fmt::format("clip_norm {}: expected a number of at least 0", given.clip_norm)};
  return Unit{};
}

/// what: "tensor" or "state vector".
Status check_sizes(const char* what, const std::vector<std::uint64_t>& sizes) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > kMostValues - all)
      return Error{fmt::format("{} {}: with its {} values the model would have more than {}", what, i,
                               sizes[i], kMostValues)};
    all += sizes[i];
  }
  return Unit{};
}

// The first group may count the updates of each tensor of the others; moving averages need that.
std::string fault_of_counts(const CallerModel& model) {
  std::uint64_t counted = 0;
  bool moving = false;
  for (std::size_t g = 0; g < model.groups.size(); ++g) {
    if (has_counts(model.rules[g].options.kind)) counted += model.groups[g].tensors;
    moving = moving || model.groups[g].kind == TW_MOVING;
  }
  if (model.groups.front().kind != TW_UPDATES)
    return moving ? "moving averages: expected counts of updates (TW_UPDATES) as the first group" : "";
  if (model.tensor_sizes.front() >= counted) return {};
  return fmt::format("{} counts of updates, while {} tensors are updated", model.tensor_sizes.front(),
                     counted);
}

/// As the program counts its groups: without that of the counts.
std::size_t number_of(const std::vector<tw_group>& groups, std::size_t group) {
  const bool has_counts = groups.front().kind == TW_UPDATES;
  return has_counts && group > 0 ? group - 1 : group;
}

// Makes a rule of each group.
Status read_groups(CallerModel& model) {
  std::size_t next = 0;
  bool averages = false;
  for (std::size_t g = 0; g < model.groups.size(); ++g) {
    const tw_group& group = model.groups[g];
    if (const std::string fault = fault_of(group); !fault.empty())
      return Error{fmt::format("group {}: {}", number_of(model.groups, g), fault)};
    if (group.tensors > model.tensor_sizes.size() - next)
      return Error{fmt::format("group {}: {} tensors, while {} are left", number_of(model.groups, g),
                               group.tensors, model.tensor_sizes.size() - next)};
    if (averages && !is_average(group))
      return Error{fmt::format("group {}: groups of running statistics come last", g)};
    averages = is_average(group);
    if (group.kind == TW_UPDATES && (g != 0 || group.tensors != 1))
      return Error{fmt::format("group {}: counts of updates are one tensor, in the first group", g)};
    const auto first = model.tensor_sizes.begin() + static_cast<std::ptrdiff_t>(next);
    model.rules.push_back(
        one_group(options_of(group), {first, first + static_cast<std::ptrdiff_t>(group.tensors)}));
    next += group.tensors;
  }
  if (const std::string fault = fault_of_counts(model); !fault.empty()) return Error{fault};
  if (next != model.tensor_sizes.size())
    return Error{fmt::format("the groups have {} tensors, the model {}", next, model.tensor_sizes.size())};
  return Unit{};
}

}  // namespace

Result<CallerModel> read_model(const tw_model& given) {
  TW_TRY(check_head(given));
  CallerModel model{.clip_norm = given.clip_norm, .layout = given.layout != nullptr ? given.layout : ""};
  model.groups.assign(given.groups, given.groups + given.group_count);
  model.tensor_sizes.assign(given.tensor_sizes, given.tensor_sizes + given.tensor_count);
  if (given.state_sizes != nullptr)
    model.state_sizes.assign(given.state_sizes, given.state_sizes + given.state_count);
  TW_TRY(check_sizes("tensor", model.tensor_sizes));
  TW_TRY(check_sizes("state vector", model.state_sizes));
  TW_TRY(read_groups(model));
  if (model.parameters() == 0) return Error{"the model has no parameters"};
  if (model.updates_itself() && std::ranges::any_of(model.groups, is_the_engines))
    return Error{"the program's own optimizer updates all parameters or none"};
  return model;
}

Status check_tensors(const CallerModel& model, std::span<const tw_tensor> tensors) {
  if (tensors.size() != model.tensor_sizes.size())
    return Error{fmt::format("{} tensors, the model has {}", tensors.size(), model.tensor_sizes.size())};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].count != model.tensor_sizes[i])
      return Error{fmt::format("tensor {} has {} values, in the model {}", i, tensors[i].count,
                               model.tensor_sizes[i])};
    if (tensors[i].dtype > TW_BFLOAT16)
      return Error{fmt::format("tensor {}: dtype {}, expected a tw_dtype", i, tensors[i].dtype)};
    if (tensors[i].reserved != 0)
      return Error{fmt::format("tensor {}: reserved is {}, expected 0", i, tensors[i].reserved)};
  }
  return Unit{};
}

namespace {

/// Whether some value has all bits of its exponent set: it is infinite or no number.
template <class Bits>
bool has_not_finite(const std::byte* values, std::uint64_t count, Bits exponent) {
  constexpr std::uint64_t kAtOnce = 64;
  std::array<Bits, kAtOnce> some{};
  for (std::uint64_t at = 0; at < count; at += kAtOnce) {
    const std::uint64_t left = std::min(count - at, kAtOnce);
    if (left < kAtOnce) some.fill(0);
    std::memcpy(some.data(), values + at * sizeof(Bits), left * sizeof(Bits));
    Bits found = 0;
    for (const Bits value : some) found |= static_cast<Bits>((value & exponent) == exponent);
    if (found != 0) return true;
  }
  return false;
}

bool has_not_finite(std::uint32_t dtype, const std::byte* bytes, std::uint64_t count) {
  if (dtype == TW_FLOAT32) return has_not_finite<std::uint32_t>(bytes, count, 0x7f800000);
  const std::uint16_t exponent = dtype == TW_FLOAT16 ? 0x7c00 : 0x7f80;
  return has_not_finite<std::uint16_t>(bytes, count, exponent);
}

/// What one thread does at once.
struct TensorPart {
  std::size_t tensor;
  std::uint64_t first, count;  ///< values of the tensor
  std::uint64_t place;         ///< of the first one in the flat vector
  const std::byte* bytes;
};

/// Parts of the tensors that have values, in their order.
std::vector<TensorPart> parts_of(std::span<const tw_tensor> tensors) {
  constexpr std::uint64_t kMost = 1 << 16;
  std::vector<TensorPart> parts;
  std::uint64_t place = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const tw_tensor& tensor = tensors[i];
    const auto* const bytes = static_cast<const std::byte*>(tensor.data);
    for (std::uint64_t first = 0; bytes != nullptr && first < tensor.count; first += kMost)
      parts.push_back({i, first, std::min(kMost, tensor.count - first), place + first,
                       bytes + encoded_bytes(codec_of(tensor.dtype), first)});
    place += tensor.count;
  }
  return parts;
}

}  // namespace

std::optional<std::size_t> first_not_finite(std::span<const tw_tensor> tensors, std::size_t threads) {
  const std::vector<TensorPart> parts = parts_of(tensors);
  std::atomic<std::size_t> first = tensors.size();
  in_parallel(threads, parts.size(), [&](std::size_t i) {
    const TensorPart& part = parts[i];
    if (part.tensor >= first || !has_not_finite(tensors[part.tensor].dtype, part.bytes, part.count)) return;
    for (std::size_t before = first;
         part.tensor < before && !first.compare_exchange_weak(before, part.tensor);) {
    }
  });
  return first < tensors.size() ? std::optional(first.load()) : std::nullopt;
}

void add_tensors(std::span<const tw_tensor> tensors, float weight, std::span<float> sum,
                 std::size_t threads) {
  const std::vector<TensorPart> parts = parts_of(tensors);
  in_parallel(threads, parts.size(), [&](std::size_t i) {
    const TensorPart& part = parts[i];
    const codec::Codec codec = codec_of(tensors[part.tensor].dtype);
    decode_add(codec, {part.bytes, encoded_bytes(codec, part.count)}, weight,
               sum.subspan(part.place, part.count));
  });
}

// ---- callbacks

std::vector<tw_group> Callbacks::settings(Round round, const std::string& wanted,
                                          std::vector<tw_group> groups) const {
  if (calls_.settings != nullptr &&
      calls_.settings(calls_.user, round, wanted.c_str(), groups.data(), groups.size()) != 0)
    throw CallbackFailed();
  return groups;
}

void Callbacks::update(Round round, std::span<const float> mean, std::span<const tw_step> steps) const {
  TW_CHECK(has_update());
  if (calls_.update(calls_.user, round, mean.data(), mean.size(), steps.data(), steps.size()) != 0)
    throw CallbackFailed();
}

void Callbacks::load(Round round, bool restored) const {
  if (calls_.load != nullptr && calls_.load(calls_.user, round, restored ? 1 : 0) != 0)
    throw CallbackFailed();
}

void Callbacks::save(Saved what) const {
  const std::uint32_t all = what == Saved::all ? 1 : 0;
  if (has_save() && calls_.save(calls_.user, all) != 0) throw CallbackFailed();
}

void Callbacks::contribution(Round round, std::span<float> sum) const {
  if (calls_.contribution(calls_.user, round, sum.data(), sum.size()) != 0) throw CallbackFailed();
}

void Callbacks::warn(const std::string& line) const {
  if (calls_.warn != nullptr) return calls_.warn(calls_.user, line.c_str());
  host::write_to_stderr(fmt::format("tradewind: {}\n", printable_line(line)));
}

std::unique_ptr<train::Optimizer> make_caller_optimizer(const CallerModel& model, const Callbacks& callbacks,
                                                        std::size_t threads) {
  return std::make_unique<WithVectors>(
      make_optimizer(model.rules, model.clip_norm, threads, elsewhere_of(callbacks)), model.state_sizes);
}

namespace {

/// With the settings that the program gave them for this update. Throws what is wrong with one.
std::vector<train::GroupStep> steps_of(const std::vector<tw_group>& began, std::vector<tw_group> now) {
  std::vector<train::GroupStep> steps;
  for (std::size_t g = 0; g < began.size(); ++g) {
    now[g].kind = began[g].kind;  // the rule stays
    const bool begins_momentum = began[g].momentum == 0 && now[g].momentum != 0;
    const std::string fault = begins_momentum ? "momentum cannot begin after the start" : fault_of(now[g]);
    if (!fault.empty()) throw std::runtime_error(fmt::format("group {}: {}", number_of(began, g), fault));
    steps.push_back(step_of(now[g], began[g].momentum != 0));
  }
  return steps;
}

}  // namespace

train::StateHooks hooks_of(const CallerModel& model, const Callbacks& callbacks, std::size_t threads) {
  train::StateHooks hooks{.threads = threads};
  hooks.settings = [groups = model.groups, callbacks](Round round, const std::string& wanted) {
    return steps_of(groups, callbacks.settings(round, wanted, groups));
  };
  hooks.changed = [callbacks](Round round, bool restored) { callbacks.load(round, restored); };
  if (!callbacks.has_save()) return hooks;
  hooks.about_to_copy = [callbacks] { callbacks.save(Saved::all); };
  if (callbacks.has_update()) hooks.about_to_digest = [callbacks] { callbacks.save(Saved::parameters); };
  return hooks;
}

}  // namespace tw::bind
