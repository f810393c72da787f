// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "bind/tradewind.h"
#include "train/learn/optimizer.h"
#include "train/learn/state.h"

namespace tw::bind {

/// The model of the program around the engine, as given at the beginning. All values are copies.
struct CallerModel {
  std::vector<tw_group> groups;
  std::vector<train::ParameterGroup> rules;  ///< of the groups
  std::vector<std::uint64_t> tensor_sizes;   ///< floats
  std::vector<std::uint64_t> state_sizes;    ///< floats
  double clip_norm = 0;
  std::string layout;

  std::uint64_t parameters() const;
  bool updates_itself() const;  ///< TW_CALLER
  bool averages() const;        ///< TW_AVERAGE, TW_MOVING
};

/// The error names the group or count and what was expected.
Result<CallerModel> read_model(const tw_model& model);

/// Sizes and dtypes are those of the model. The error names the tensor.
Status check_tensors(const CallerModel& model, std::span<const tw_tensor> tensors);

/// The first one with a value that is not finite. The tensors are those that check_tensors accepts.
std::optional<std::size_t> first_not_finite(std::span<const tw_tensor> tensors, std::size_t threads = 1);

/// sum += weight x value, tensor after tensor. The tensors are those that check_tensors accepts.
void add_tensors(std::span<const tw_tensor> tensors, float weight, std::span<float> sum,
                 std::size_t threads = 1);

/// What a copy is about to be made of: the parameters, or all vectors.
enum class Saved : std::uint8_t { parameters, all };

/// A callback asked for the end.
struct CallbackFailed : std::exception {
  const char* what() const noexcept override { return "a callback of the program failed"; }
};

/// The program's callbacks. All are called on its own thread, and throw CallbackFailed when it asks for the
/// end (warn() asks for none).
class Callbacks {
 public:
  explicit Callbacks(const tw_calls* calls) : calls_(calls != nullptr ? *calls : tw_calls{}) {}

  /// The settings of the update of this round, of which the record has `wanted`; defaults are in `groups`.
  std::vector<tw_group> settings(Round round, const std::string& wanted, std::vector<tw_group> groups) const;
  void update(Round round, std::span<const float> mean, std::span<const tw_step> steps) const;
  void load(Round round, bool restored) const;

  bool has_update() const { return calls_.update != nullptr; }

  bool has_save() const { return calls_.save != nullptr; }

  void save(Saved what) const;

  bool has_contribution() const { return calls_.contribution != nullptr; }

  void contribution(Round round, std::span<float> sum) const;

  /// One sentence for the user: to the program, else to stderr.
  void warn(const std::string& line) const;

 private:
  tw_calls calls_;
};

/// Whether tw_calls.update is there where it has to be. The error says where.
Status check_update(const CallerModel& model, const Callbacks& callbacks);

/// The optimizer of the engine, which has tw_calls.update update, if there is one; with the program's vectors
/// beside its buffers.
std::unique_ptr<train::Optimizer> make_caller_optimizer(const CallerModel& model, const Callbacks& callbacks,
                                                        std::size_t threads);

/// Hooks of a TrainState with that optimizer.
train::StateHooks hooks_of(const CallerModel& model, const Callbacks& callbacks, std::size_t threads);

}  // namespace tw::bind
