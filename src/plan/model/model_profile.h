// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "plan/model/gpu.h"

/// Planner inputs about a model.
namespace tw::plan {

/// A number with its 80 % range.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;

  bool operator==(const Estimate&) const = default;
};

/// value / factor to value * factor.
Estimate within_factor(double value, double factor);

struct MeasuredSpeed {
  double samples_per_s = 0;
  double factor = 1.03;  ///< of its 80 % range
  std::string source;

  bool operator==(const MeasuredSpeed&) const = default;
};

struct ModelProfile {
  std::string name;
  double params_m = 0;  ///< millions
  int tensors = 0;
  double microbatch = 32;
  double data_mb_per_sample = 0;  ///< read from the data store
  /// Hivemind: the least time of a round. Published runs of speech were set to 20 s, all others to 5 s.
  double matchmaking_s = 5;
  double sequence = 0;                            ///< tokens of a sample; 0: not known, or not a text
  double state_mb = 0;                            ///< of a checkpoint; 0: not known, also below
  double memory_mb = 0;                           ///< resident, of a peer at its peak
  double gpu_memory_mb = 0;                       ///< the same on one of its GPUs
  double cpu_cores = 0;                           ///< with which "cpu" below was measured; 0: not known
  std::string file{};                             ///< of tw profile; empty: of the catalog
  std::string command{};                          ///< that was measured, as for a shell
  std::map<std::string, std::string> hardware{};  ///< by the names below: processor, cores, GPUs in words
  /// By GPU: speed of a peer while it accumulates gradients for a round.
  std::map<std::string, MeasuredSpeed> accumulating;
  /// By GPU: speed of a machine that trains alone.
  std::map<std::string, MeasuredSpeed> alone;

  bool operator==(const ModelProfile&) const = default;
};

struct Speed {
  Estimate samples_per_s;
  std::string source;
  bool measured = false;
};

/// What a machine with several GPUs asks of the program, unless it was measured with it; else empty.
std::string several_gpus_text(const std::string& machine, bool measured);

/// FLOPS to train a sample of a model of text: 6 a parameter and token (Kaplan et al. 2020); 0: not known.
double flops_of_sample(const ModelProfile& model);

/// Samples per second of an accumulating peer: measured, else from the speed of the same machine alone, else
/// from other GPUs by FLOPS (80 % range: a factor of 2), else from the cores of a processor (a factor of 5),
/// else from its parameters and its sequence (a factor of 2.5). A speed that needs more FLOPS than the data
/// sheet has is an error. Several GPUs that were not measured together count as their number times one. Where
/// it was not measured, the source says how to do that; so does an error.
Result<Speed> speed_of(const ModelProfile& model, const std::string& gpu, const Gpus& gpus);

/// Speed while accumulating, which adds passes over the gradients and their sum to each microbatch
/// (parameters x 4 bytes / memory bandwidth).
double accumulating_speed(const ModelProfile& model, double alone_samples_per_s, const Gpu& gpu);

class Models {
 public:
  /// The models of Erben et al. 2024: three CNNs, ConvNeXt, RoBERTa and Whisper in several sizes.
  static const Models& built_in();

  /// Ignores the name's case. An error lists the known ones.
  Result<ModelProfile> find(const std::string& name) const;

  /// Replaces one of the same name.
  void add(ModelProfile model) { models_[model.name] = std::move(model); }

  const std::map<std::string, ModelProfile>& all() const { return models_; }

 private:
  std::map<std::string, ModelProfile> models_;
};

/// Two CSVs: model,params_m,tensors,microbatch,data_mb_per_sample,matchmaking_s and
/// model,gpu,how,samples_per_s,factor,source with `how` accumulating or alone.
Result<Models> read_models(std::string_view models, std::string_view speeds);

}  // namespace tw::plan
