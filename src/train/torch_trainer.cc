// SPDX-License-Identifier: Apache-2.0
#include "train/torch_trainer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "base/prng.h"
#include "data/sample_order.h"
#include "train/run/run_data.h"
#include "train/torch_buffers.h"
#include "train/torch_layout.h"
#include "train/torch_model.h"

// OpenBLAS has threads of its own that at::set_num_threads does not know; other BLAS libraries lack the
// symbol.
extern "C" __attribute__((weak)) void openblas_set_num_threads(int threads);

namespace tw::train {
namespace {

constexpr std::uint64_t kEvaluationBatch = 100;
/// Samples ahead; their bytes are bounded by data.memory.
constexpr std::size_t kMostExpected = 4096;

/// A view of the array, which must outlive it.
at::Tensor view_of(data::Array& array) {
  const std::vector<std::int64_t> sizes(array.shape.begin(), array.shape.end());
  if (auto* floats = std::get_if<std::vector<float>>(&array.values)) {
    return at::from_blob(floats->data(), sizes, at::kFloat);
  }
  return at::from_blob(std::get<std::vector<std::int64_t>>(array.values).data(), sizes, at::kLong);
}

/// Samples that are consecutive in the data set and in the run.
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

bool is_coarse(codec::Codec codec) { return codec == codec::Codec::int8 || codec == codec::Codec::int4; }

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
        sources_(data_.print.empty() ? "" : fmt::format("data: {}\n", data_.print)),
        order_(options.seed, data_.training->size(), block_of(options)),
        layout_(std::move(layout)),
        buffers_(*model_, options.buffers) {}

  std::uint64_t parameter_count() const override { return trained() + buffers_.size(); }

  std::vector<std::uint64_t> tensor_sizes() const override {
    std::vector<std::uint64_t> sizes;
    for (const FlatTensor& flat : layout_) sizes.push_back(static_cast<std::uint64_t>(flat.size));
    std::ranges::copy(buffers_.tensor_sizes(), std::back_inserter(sizes));
    return sizes;
  }

  std::vector<ParameterGroup> groups(const OptimizerOptions& options) const override {
    std::vector<std::uint64_t> sizes = tensor_sizes();
    sizes.resize(layout_.size());
    std::vector<ParameterGroup> all = {one_group(options, std::move(sizes))};
    if (auto tail = buffers_.group()) all.push_back(*std::move(tail));
    return all;
  }

  std::string sources() const override { return sources_; }

  std::optional<data::SampleOrder> order() const override { return order_; }

  std::string layout() const override {
    std::string lines;
    for (const FlatTensor& flat : layout_)
      lines +=
          fmt::format("group 0: {} ({}) float32\n", flat.name, fmt::join(flat.tied.front().sizes(), ", "));
    return lines + buffers_.layout();
  }

  void initial_parameters(std::span<float> out) override {
    TW_CHECK(out.size() == parameter_count());
    for (const FlatTensor& flat : layout_)
      std::copy(flat.initial.begin(), flat.initial.end(), out.begin() + flat.first);
    buffers_.initial(out.subspan(trained()));
  }

  void lead(bool leads) override { buffers_.lead(leads); }

  double accumulate(std::span<const float> parameters, SampleSpan samples,
                    std::span<float> gradient_sum) override {
    TW_CHECK(gradient_sum.size() == parameter_count());
    prepare(parameters, true);
    bind_gradients(gradient_sum.data());
    double loss_sum = 0;
    for (std::uint64_t done = 0; done < samples.count; done += microbatch_) {
      const SampleSpan span{samples.first + done, std::min(microbatch_, samples.count - done)};
      const std::span<const float> tail = parameters.subspan(trained());
      buffers_.load(tail);
      const Pass pass = accumulate_microbatch(span);
      loss_sum += pass.loss_sum;
      buffers_.add_changes(tail, pass.samples, gradient_sum.subspan(trained()));
    }
    refuse_drift(samples);
    return loss_sum;
  }

  std::optional<data::MissingSample> load(const RangeSet& samples, bool skips) override {
    if (!data_.training->fetches()) return std::nullopt;
    return data_.training->load(picks_of(samples, samples.count()), skips);
  }

  void expect(const RangeSet& samples) override {
    if (data_.training->fetches()) data_.training->expect(picks_of(samples, kMostExpected));
  }

  data::LoadNews take_load_news() override { return data_.training->take_news(); }

  std::optional<data::LoadWait> waiting_for_data() const override {
    std::optional<data::LoadWait> wait = data_.training->waiting();
    if (!wait && data_.evaluation) wait = data_.evaluation->waiting();
    return wait;
  }

  Evaluation evaluate(std::span<const float> parameters, WorkMeter& meter) override {
    if (!data_.evaluation) return {.loss = std::numeric_limits<double>::quiet_NaN()};
    prepare(parameters, false);
    buffers_.load(parameters.subspan(trained()));
    const at::NoGradGuard no_gradients;
    const std::uint64_t all = data_.evaluation->size();
    const std::uint64_t samples = evaluation_samples_ == 0 ? all : std::min(all, evaluation_samples_);
    double loss_sum = 0;
    double judged = 0;
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
      const auto came = static_cast<double>(batch.inputs.shape.front());  // without those that are left out
      loss_sum += result.mean_loss * came;
      judged += came;
      if (!result.correct) continue;
      correct += *result.correct;
      const auto* integers = std::get_if<std::vector<std::int64_t>>(&batch.targets.values);
      answers += integers != nullptr ? integers->size() : static_cast<std::uint64_t>(came);
    }
    Evaluation evaluation{.loss = judged > 0 ? loss_sum / judged : std::numeric_limits<double>::quiet_NaN()};
    if (answers > 0) evaluation.accuracy = correct / static_cast<double>(answers);
    return evaluation;
  }

  /// Runs one pass of so many samples and one evaluation batch, and finds the buffers that training changes.
  Status try_model(std::uint64_t samples) {
    std::vector<float> parameters(parameter_count());
    std::vector<float> gradient(parameter_count());
    initial_parameters(parameters);
    try {
      prepare(parameters, true);
      bind_gradients(gradient.data());
      accumulate_microbatch({0, samples});
      if (const Status found = buffers_.find_changed(); !found)
        return Error{fmt::format("{}: {}", name_, found.error().message)};
      parameters.resize(parameter_count());
      parameters_at_ = nullptr;
      initial_parameters(parameters);
      if (data_.evaluation) {
        const std::uint64_t all = std::exchange(evaluation_samples_, 1);
        Trainer::evaluate(parameters);
        evaluation_samples_ = all;
      }
    } catch (const std::runtime_error& e) {
      return Error{e.what()};
    }
    parameters_at_ = nullptr;
    gradients_at_ = nullptr;
    return Unit{};
  }

  /// Refuses what buffers that change do not go with.
  Status check_buffers(const RunOptions& options) const {
    if (buffers_.size() == 0) return Unit{};
    if (is_coarse(options.codec))
      return Error{
          fmt::format("{}: training.codec {}: buffers that change (BatchNorm) are averaged with fp32, fp16 "
                      "or bf16: rounding could make a variance negative",
                      name_, codec::kCodecNames[static_cast<std::size_t>(options.codec)])};
    if (options.buffers != BufferUse::leader) return Unit{};
    if (options.norm_cap > 0)
      return Error{
          fmt::format("{}: training.norm_cap {} with training.buffers leader: the norm of the leader's "
                      "gradient would count its samples; use training.buffers mean, or training.clip_norm",
                      name_, options.norm_cap)};
    if (options.feeds_back())
      return Error{
          fmt::format("{}: training.error_feedback true with training.buffers leader: what rounding left "
                      "over could come when another peer leads; use training.buffers mean",
                      name_)};
    return Unit{};
  }

 private:
  enum class Mode : std::uint8_t { none, training, evaluation };

  /// Floats before those of the buffers.
  std::uint64_t trained() const {
    return static_cast<std::uint64_t>(layout_.back().first + layout_.back().size);
  }

  void refuse_drift(SampleSpan span) const {
    const std::string name = buffers_.drifted();
    if (name.empty()) return;
    throw std::runtime_error(fmt::format(
        "{}: training changes the buffer {} with samples {} to {} of the run, while its first pass "
        "left it as it was; peers share only buffers that every pass changes",
        name_, name, span.first, span.first + span.count - 1));
  }

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

  std::vector<data::Pick> picks_of(const RangeSet& samples, std::uint64_t most) const {
    std::vector<data::Pick> picks;
    for (const Range& range : samples.ranges()) {
      for (std::uint64_t s = range.first; s < range.end() && picks.size() < most; ++s)
        picks.push_back({order_.index_of(s), s});
    }
    return picks;
  }

  struct Pass {
    std::uint64_t samples = 0;  ///< without those that the run goes on without
    double loss_sum = 0;
  };

  Pass accumulate_microbatch(SampleSpan span) {
    data::Batch batch = data_.training->pick(picks_of(RangeSet(Range{span.first, span.count}), span.count));
    const std::uint64_t got = batch.inputs.shape.empty() ? 0 : batch.inputs.shape[0];
    if (got == 0) return {};
    at::manual_seed(mix(seed_, span.first));
    return model_guard(batch, [&]() -> Pass {
      const at::Tensor mean = model_->loss(view_of(batch.inputs), view_of(batch.targets));
      if (mean.numel() != 1) {
        throw std::runtime_error(
            fmt::format("forward returned a tensor of shape [{}], not one number: the mean loss "
                        "of the batch",
                        fmt::join(mean.sizes(), ", ")));
      }
      const at::Tensor sum = mean.sum() * static_cast<double>(got);
      sum.backward();
      return {got, sum.item<double>()};
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
  std::string sources_;
  data::SampleOrder order_;
  std::vector<FlatTensor> layout_;
  TorchBuffers buffers_;
  Mode mode_ = Mode::none;
  const float* parameters_at_ = nullptr;
  float* gradients_at_ = nullptr;
};

/// Samples of the smallest pass of a run: BatchNorm refuses one with a single value a channel.
std::uint64_t smallest_pass(const RunOptions& options) {
  const std::uint64_t rest = options.target_batch_size % options.microbatch;
  return rest == 0 ? options.microbatch : rest;
}

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
  const bool has_buffers = !model->buffers().empty();
  auto trainer = std::make_unique<TorchTrainer>(options, threads, std::move(model), std::move(data).value(),
                                                std::move(layout).value());
  const Status tried = trainer->try_model(has_buffers ? smallest_pass(options) : 1);
  if (!tried) return tried.error();
  if (const Status fits = trainer->check_buffers(options); !fits) return fits.error();
  return std::unique_ptr<Trainer>(std::move(trainer));
}

}  // namespace tw::train
