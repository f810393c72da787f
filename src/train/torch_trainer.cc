// SPDX-License-Identifier: Apache-2.0
#include "train/torch_trainer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "base/prng.h"
#include "data/sample_order.h"
#include "train/run_data.h"
#include "train/torch_model.h"

// OpenBLAS has threads of its own that at::set_num_threads does not know; other BLAS libraries lack the
// symbol.
extern "C" __attribute__((weak)) void openblas_set_num_threads(int threads);

namespace tw::train {
namespace {

constexpr std::uint64_t kEvaluationBatch = 100;
/// Samples ahead; their bytes are bounded by data.memory.
constexpr std::size_t kMostExpected = 16384;

/// Where the tensors of a model lie in the flat vector.
struct FlatTensor {
  std::string name;
  std::vector<at::Tensor> tied;  // the parameters that are one tensor
  std::int64_t first = 0;
  std::int64_t size = 0;
  std::vector<float> initial;
};

bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

bool overlap(const at::Tensor& a, const at::Tensor& b) {
  if (!a.is_alias_of(b)) return false;
  const auto begin = [](const at::Tensor& t) { return static_cast<const char*>(t.data_ptr()); };
  const auto end = [&](const at::Tensor& t) {
    std::int64_t last = 0;
    for (std::int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
    return begin(t) + (last + 1) * t.itemsize();
  };
  return begin(a) < end(b) && begin(b) < end(a);
}

Result<std::vector<FlatTensor>> lay_out(const TorchModel& model) {
  std::vector<FlatTensor> layout;
  std::int64_t first = 0;
  for (const auto& [name, tensor] : model.parameters()) {
    if (tensor.scalar_type() != at::kFloat) {
      return Error{
          fmt::format("parameter {} is {}; only float32 can be trained (call float() before you save, or "
                      "requires_grad_(False) to keep it as it is)",
                      name, at::toString(tensor.scalar_type()))};
    }
    if (tensor.numel() == 0) continue;
    const auto twin = std::find_if(layout.begin(), layout.end(), [&t = tensor](const FlatTensor& flat) {
      return overlap(flat.tied.front(), t);
    });
    if (twin != layout.end()) {
      if (!same_memory(twin->tied.front(), tensor)) {
        return Error{
            fmt::format("parameters {} and {} share a part of their memory; only whole tensors of one shape "
                        "can be tied",
                        twin->name, name)};
      }
      twin->tied.push_back(tensor);
      continue;
    }
    const at::Tensor dense = tensor.detach().contiguous();
    const float* values = dense.data_ptr<float>();
    layout.push_back({name, {tensor}, first, tensor.numel(), {values, values + tensor.numel()}});
    first += tensor.numel();
  }
  if (layout.empty()) return Error{"no parameters to train (a frozen module has none)"};
  return layout;
}

/// A view of the array, which must outlive it.
at::Tensor view_of(data::Array& array) {
  const std::vector<std::int64_t> sizes(array.shape.begin(), array.shape.end());
  if (auto* floats = std::get_if<std::vector<float>>(&array.values)) {
    return at::from_blob(floats->data(), sizes, at::kFloat);
  }
  return at::from_blob(std::get<std::vector<std::int64_t>>(array.values).data(), sizes, at::kLong);
}

/// Samples that stand side by side in the data set and in the run.
std::uint64_t block_of(const RunOptions& options) {
  const ShardData& shards = options.data.shards;
  if (options.data.kind != DataKind::shards || shards.shuffle == Shuffle::samples) return 1;
  return shards.block != 0 ? shards.block : options.microbatch;
}

std::string array_text(const data::Array& array) {
  return fmt::format("{} [{}]", array.values.index() == 0 ? "float32" : "int64",
                     fmt::join(array.shape, ", "));
}

/// The line of a message of torch that says what happened: Python-like traces end with it, others begin with
/// it.
std::string gist(const std::exception& e) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&e);
  const std::string text = torch_error != nullptr ? torch_error->what_without_backtrace() : e.what();
  const std::size_t error = text.rfind("RuntimeError: ");
  const std::string_view from = std::string_view(text).substr(error == std::string::npos ? 0 : error + 14);
  return std::string(from.substr(0, from.find('\n')));
}

class TorchTrainer : public Trainer {
 public:
  TorchTrainer(const RunOptions& options, int threads, std::unique_ptr<TorchModel> model, RunData data,
               std::vector<FlatTensor> layout)
      : name_(options.model),
        seed_(options.seed),
        microbatch_(options.microbatch),
        evaluation_samples_(options.evaluation.samples),
        threads_(threads),
        model_(std::move(model)),
        data_(std::move(data)),
        order_(options.seed, data_.training->size(), block_of(options)),
        layout_(std::move(layout)) {}

  std::uint64_t parameter_count() const override {
    return static_cast<std::uint64_t>(layout_.back().first + layout_.back().size);
  }

  std::vector<std::uint64_t> tensor_sizes() const override {
    std::vector<std::uint64_t> sizes;
    for (const FlatTensor& flat : layout_) sizes.push_back(static_cast<std::uint64_t>(flat.size));
    return sizes;
  }

  std::string layout() const override {
    std::string lines;
    for (const FlatTensor& flat : layout_)
      lines +=
          fmt::format("group 0: {} ({}) float32\n", flat.name, fmt::join(flat.tied.front().sizes(), ", "));
    return lines;
  }

  void initial_parameters(std::span<float> out) override {
    TW_CHECK(out.size() == parameter_count());
    for (const FlatTensor& flat : layout_)
      std::copy(flat.initial.begin(), flat.initial.end(), out.begin() + flat.first);
  }

  double accumulate(std::span<const float> parameters, SampleSpan samples,
                    std::span<float> gradient_sum) override {
    TW_CHECK(gradient_sum.size() == parameter_count());
    prepare(parameters, true);
    bind_gradients(gradient_sum.data());
    double loss_sum = 0;
    for (std::uint64_t done = 0; done < samples.count; done += microbatch_) {
      loss_sum += accumulate_microbatch({samples.first + done, std::min(microbatch_, samples.count - done)});
    }
    return loss_sum;
  }

  void expect(const RangeSet& samples) override {
    std::vector<data::Pick> picks;
    for (const Range& range : samples.ranges()) {
      for (std::uint64_t s = range.first; s < range.end() && picks.size() < kMostExpected; ++s)
        picks.push_back({order_.index_of(s), s});
    }
    data_.training->expect(picks);
  }

  data::LoadNews take_load_news() override { return data_.training->take_news(); }

  Evaluation evaluate(std::span<const float> parameters, WorkMeter& meter) override {
    if (!data_.evaluation) return {.loss = std::numeric_limits<double>::quiet_NaN()};
    prepare(parameters, false);
    const at::NoGradGuard no_gradients;
    const std::uint64_t all = data_.evaluation->size();
    const std::uint64_t samples = evaluation_samples_ == 0 ? all : std::min(all, evaluation_samples_);
    double loss_sum = 0;
    double correct = 0;
    std::uint64_t answers = 0;
    meter.begin((samples + kEvaluationBatch - 1) / kEvaluationBatch);
    for (std::uint64_t first = 0; first < samples; first += kEvaluationBatch) {
      std::vector<std::uint64_t> indices(std::min(kEvaluationBatch, samples - first));
      std::iota(indices.begin(), indices.end(), first);
      std::vector<data::Pick> coming;
      for (std::uint64_t s = first; s < std::min(samples, first + 2 * kEvaluationBatch); ++s)
        coming.push_back({s, s});
      data_.evaluation->expect(coming);
      data::Batch batch = data_.evaluation->gather(indices);
      if (batch.inputs.shape.empty()) continue;
      const BatchResult result =
          model_guard(batch, [&] { return model_->judge(view_of(batch.inputs), view_of(batch.targets)); });
      meter.step();
      loss_sum += result.mean_loss * static_cast<double>(indices.size());
      if (!result.correct) continue;
      correct += *result.correct;
      const auto* integers = std::get_if<std::vector<std::int64_t>>(&batch.targets.values);
      answers += integers != nullptr ? integers->size() : indices.size();
    }
    Evaluation evaluation{.loss = loss_sum / static_cast<double>(samples)};
    if (answers > 0) evaluation.accuracy = correct / static_cast<double>(answers);
    return evaluation;
  }

  /// Runs one microbatch and one evaluation batch, and looks at what the model did besides.
  Status try_model() {
    std::vector<float> parameters(parameter_count());
    std::vector<float> gradient(parameter_count());
    initial_parameters(parameters);
    const NamedTensors before = model_->buffers();
    try {
      accumulate(parameters, {0, 1}, gradient);
      const NamedTensors after = model_->buffers();
      for (std::size_t i = 0; i < before.size(); ++i) {
        if (after[i].second.equal(before[i].second)) continue;
        return Error{
            fmt::format("{}: training changes the buffer {}, which peers do not share, so that they would "
                        "drift apart; use a layer without running statistics (GroupNorm or LayerNorm for "
                        "BatchNorm)",
                        name_, before[i].first)};
      }
      if (data_.evaluation) {
        const std::uint64_t samples = std::exchange(evaluation_samples_, 1);
        Trainer::evaluate(parameters);
        evaluation_samples_ = samples;
      }
    } catch (const std::runtime_error& e) {
      return Error{e.what()};
    }
    parameters_at_ = nullptr;
    gradients_at_ = nullptr;
    return Unit{};
  }

 private:
  enum class Mode : std::uint8_t { none, training, evaluation };

  void prepare(std::span<const float> parameters, bool training) {
    TW_CHECK(parameters.size() == parameter_count());
    // OpenMP keeps this number for each thread, and calls may come from another one than the last.
    at::set_num_threads(threads_);
    if (openblas_set_num_threads != nullptr) openblas_set_num_threads(threads_);
    const Mode mode = training ? Mode::training : Mode::evaluation;
    if (std::exchange(mode_, mode) != mode) model_->set_training(training);
    if (std::exchange(parameters_at_, parameters.data()) == parameters.data()) return;
    // Torch has no views of constant memory; nothing here writes to parameters.
    auto* begin = const_cast<float*>(parameters.data());
    for (const FlatTensor& flat : layout_) {
      for (at::Tensor parameter : flat.tied) {
        parameter.set_data(at::from_blob(begin + flat.first, parameter.sizes(), at::kFloat));
      }
    }
  }

  void bind_gradients(float* begin) {
    if (std::exchange(gradients_at_, begin) == begin) return;
    for (const FlatTensor& flat : layout_) {
      for (const at::Tensor& parameter : flat.tied) {
        parameter.mutable_grad() = at::from_blob(begin + flat.first, parameter.sizes(), at::kFloat);
      }
    }
  }

  double accumulate_microbatch(SampleSpan span) {
    std::vector<data::Pick> picks;
    for (std::uint64_t s = span.first; s < span.first + span.count; ++s)
      picks.push_back({order_.index_of(s), s});
    data::Batch batch = data_.training->pick(picks);
    const std::uint64_t got = batch.inputs.shape.empty() ? 0 : batch.inputs.shape[0];
    if (got == 0) return 0;  // the run goes on without any of them
    at::manual_seed(mix(seed_, span.first));
    return model_guard(batch, [&] {
      const at::Tensor mean = model_->loss(view_of(batch.inputs), view_of(batch.targets));
      if (mean.numel() != 1) {
        throw std::runtime_error(
            fmt::format("forward returned a tensor of shape [{}], not one number: the mean loss "
                        "of the batch",
                        fmt::join(mean.sizes(), ", ")));
      }
      const at::Tensor sum = mean.sum() * static_cast<double>(got);
      sum.backward();
      return sum.item<double>();
    });
  }

  /// Runs the model; what it throws comes out with the model's name and the shapes.
  template <class Run>
  auto model_guard(const data::Batch& batch, Run run) -> decltype(run()) {
    try {
      return run();
    } catch (const std::exception& e) {
      throw std::runtime_error(fmt::format("{} with inputs {} and targets {}: {}", name_,
                                           array_text(batch.inputs), array_text(batch.targets), gist(e)));
    }
  }

  std::string name_;
  std::uint64_t seed_;
  std::uint64_t microbatch_;
  std::uint64_t evaluation_samples_;
  int threads_;
  std::unique_ptr<TorchModel> model_;
  RunData data_;
  data::SampleOrder order_;
  std::vector<FlatTensor> layout_;
  Mode mode_ = Mode::none;
  const float* parameters_at_ = nullptr;
  float* gradients_at_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Trainer>> make_torch_trainer(const RunOptions& options, int threads,
                                                    const DataDoors& doors) {
  Result<RunData> data = open_run_data(options.data, doors);
  if (!data) return data.error();
  std::unique_ptr<TorchModel> model;
  if (is_built_in_model(options.model)) {
    model = make_built_in_model(options);
  } else {
    Result<std::unique_ptr<TorchModel>> script = load_torch_script(options.model);
    if (!script) return script.error();
    model = std::move(script).value();
  }
  Result<std::vector<FlatTensor>> layout = lay_out(*model);
  if (!layout) return Error{fmt::format("{}: {}", options.model, layout.error().message)};
  auto trainer = std::make_unique<TorchTrainer>(options, threads, std::move(model), std::move(data).value(),
                                                std::move(layout).value());
  const Status tried = trainer->try_model();
  if (!tried) return tried.error();
  return std::unique_ptr<Trainer>(std::move(trainer));
}

}  // namespace tw::train
