// SPDX-License-Identifier: Apache-2.0
#include "train/torch_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/prng.h"
#include "codec/codec.h"
#include "train/learn/optimizer.h"

namespace tw::train {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>(value >> static_cast<unsigned>(shift));
  return bytes;
}

/// An IDX file of unsigned bytes.
void write_idx(const std::string& path, const std::vector<std::uint32_t>& shape, const std::string& bytes) {
  std::string header = {0, 0, 8, static_cast<char>(shape.size())};
  for (const std::uint32_t extent : shape) header += big_endian(extent);
  std::ofstream(path, std::ios::binary) << header << bytes;
}

void add_parameter(torch::jit::Module& module, const char* name, const at::Tensor& value,
                   bool trained = true) {
  module.register_parameter(name, value.detach().set_requires_grad(trained), false);
}

/// A folder with a tiny data set of ten classes (a picture of class c has a bright row 2c) and a tiny text.
class TorchTrainer : public testing::Test {
 protected:
  static constexpr std::uint32_t kSamples = 200;

  TorchTrainer() {
    std::filesystem::create_directories(folder_);
    Prng prng(5);
    std::string pictures;
    std::string labels;
    for (std::uint32_t i = 0; i < kSamples; ++i) {
      const auto label = static_cast<char>(prng.below(10));
      std::string picture(28 * 28, '\0');
      for (char& pixel : picture) pixel = static_cast<char>(prng.below(120));
      picture.replace(static_cast<std::size_t>(label) * 2 * 28, 28, 28, '\xe0');
      labels += label;
      pictures += picture;
    }
    write_idx(folder_ + "/pictures", {kSamples, 28, 28}, pictures);
    write_idx(folder_ + "/labels", {kSamples}, labels);
    std::string text;
    for (int i = 0; i < 2000; ++i) text += i % 3 == 0 ? "the cat " : "the hat ";
    std::ofstream(folder_ + "/text") << text;
  }

  ~TorchTrainer() override { std::filesystem::remove_all(folder_); }

  RunOptions digits(const std::string& model = "mnist-cnn") const {
    RunOptions options{.model = model, .target_batch_size = 64, .microbatch = 64};
    options.data = {.train_inputs = folder_ + "/pictures",
                    .train_targets = folder_ + "/labels",
                    .test_inputs = folder_ + "/pictures",
                    .test_targets = folder_ + "/labels"};
    return options;
  }

  RunOptions letters() const {
    RunOptions options{.model = "char-transformer", .target_batch_size = 16, .microbatch = 16};
    options.data = {.kind = DataKind::text, .text = folder_ + "/text", .context = 16};
    return options;
  }

  /// Saves a module with this source; prepare adds what the source uses.
  std::string script(const std::string& source,
                     const std::function<void(torch::jit::Module&)>& prepare) const {
    torch::jit::Module module("Model");
    module.register_attribute("training", c10::BoolType::get(), true);
    prepare(module);
    module.define(source + "\n");
    const std::string path = folder_ + "/model.pt";
    module.save(path);
    return path;
  }

  /// A linear classifier with dropout, whose weight is a parameter "weight".
  std::string classifier() const {
    return script(R"(
      def logits(self, inputs):
        return torch.matmul(torch.dropout(inputs.flatten(1), 0.5, self.training), self.weight)
      def forward(self, inputs, targets):
        return torch.cross_entropy_loss(self.logits(inputs), targets)
      def correct(self, inputs, targets):
        return torch.sum(torch.eq(torch.argmax(self.logits(inputs), 1), targets))
    )",
                  [](torch::jit::Module& m) {
                    add_parameter(m, "weight", at::zeros({784, 10}));
                  });
  }

  static std::unique_ptr<Trainer> make(const RunOptions& options) {
    Result<std::unique_ptr<Trainer>> trainer = make_torch_trainer(options);
    EXPECT_TRUE(trainer) << trainer.error().message;
    return std::move(trainer).value();
  }

  static std::string cause(const RunOptions& options) {
    const auto trainer = make_torch_trainer(options);
    return trainer ? "none" : trainer.error().message;
  }

  std::string folder_ = testing::TempDir() + "tradewind_torch_trainer_" + std::to_string(::getpid());
};

std::vector<float> initial(Trainer& trainer) {
  std::vector<float> parameters(trainer.parameter_count());
  trainer.initial_parameters(parameters);
  return parameters;
}

std::vector<float> gradient(Trainer& trainer, const std::vector<float>& parameters, SampleSpan span) {
  std::vector<float> sum(parameters.size());
  trainer.accumulate(parameters, span, sum);
  return sum;
}

double norm(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * v;
  return std::sqrt(sum);
}

/// |a - b| / |b|.
double relative_distance(std::vector<float> a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return norm(a) / norm(b);
}

TEST_F(TorchTrainer, adds_gradients_of_the_sum_so_that_spans_can_be_cut_anywhere) {
  for (const RunOptions& options : {digits(), letters()}) {
    RunOptions whole = options;
    whole.microbatch = 64;
    const auto trainer = make(whole);
    const std::vector<float> parameters = initial(*trainer);
    std::vector<float> once(parameters.size());
    std::vector<float> twice(parameters.size());
    const double loss = trainer->accumulate(parameters, {0, 64}, once);
    const double halves =
        trainer->accumulate(parameters, {0, 32}, twice) + trainer->accumulate(parameters, {32, 32}, twice);
    EXPECT_NEAR(halves, loss, 1e-5 * loss);
    EXPECT_LT(relative_distance(twice, once), 1e-5) << options.model;
    EXPECT_GT(norm(once), 1) << options.model;
  }
}

TEST_F(TorchTrainer, cuts_long_spans_into_microbatches) {
  RunOptions options = digits();
  options.microbatch = 32;
  const auto trainer = make(options);
  const std::vector<float> parameters = initial(*trainer);
  std::vector<float> pieces(parameters.size());
  double loss = 0;
  for (const std::uint64_t first : {5U, 37U}) loss += trainer->accumulate(parameters, {first, 32}, pieces);
  loss += trainer->accumulate(parameters, {69, 6}, pieces);
  std::vector<float> whole(parameters.size());
  EXPECT_EQ(trainer->accumulate(parameters, {5, 70}, whole), loss);
  EXPECT_EQ(whole, pieces);
}

TEST_F(TorchTrainer, agrees_with_differences_of_the_loss) {
  const auto trainer = make(digits());
  std::vector<float> parameters = initial(*trainer);
  const SampleSpan span{3, 40};
  const std::vector<float> slope = gradient(*trainer, parameters, span);
  const auto loss_after_moving = [&](float distance) {
    std::vector<float> moved = parameters;
    const auto length = static_cast<float>(norm(slope));
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += distance * slope[i] / length;
    std::vector<float> unused(moved.size());
    return trainer->accumulate(moved, span, unused);
  };
  const double difference = (loss_after_moving(0.005F) - loss_after_moving(-0.005F)) / 0.01;
  EXPECT_NEAR(difference, norm(slope), 0.02 * norm(slope));
}

TEST_F(TorchTrainer, depends_on_parameters_and_span_alone) {
  const RunOptions options = digits(classifier());
  const auto trainer = make(options);
  const std::vector<float> parameters = initial(*trainer);
  const std::vector<float> expected = gradient(*trainer, parameters, {40, 20});
  EXPECT_NE(gradient(*trainer, parameters, {41, 20}), expected);
  EXPECT_EQ(gradient(*trainer, parameters, {40, 20}), expected) << "after other spans";

  const auto other = make(options);
  other->evaluate(parameters);
  const std::vector<float> elsewhere = parameters;
  EXPECT_EQ(gradient(*other, elsewhere, {40, 20}), expected) << "of another trainer";

  std::vector<float> moved = parameters;
  // Not all by the same: softmax does not see what is added to every class.
  for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += 0.001F * static_cast<float>(i % 7);
  EXPECT_NE(gradient(*trainer, moved, {40, 20}), expected) << "parameters that lie elsewhere";
}

std::vector<float> random_parameters(std::uint64_t count) {
  Prng prng(11);
  std::vector<float> parameters(count);
  for (float& p : parameters) p = static_cast<float>(prng.uniform() - 0.5);
  return parameters;
}

TEST_F(TorchTrainer, uses_dropout_in_training_but_not_in_evaluation) {
  const auto trainer = make(digits(classifier()));
  const std::vector<float> parameters = random_parameters(trainer->parameter_count());
  const double clean = trainer->evaluate(parameters).loss;
  std::vector<float> unused(parameters.size());
  const double dropped = trainer->accumulate(parameters, {0, kSamples}, unused) / kSamples;
  EXPECT_GT(std::abs(dropped - clean), 0.01 * clean);
  EXPECT_EQ(trainer->evaluate(parameters).loss, clean);
}

TEST_F(TorchTrainer, goes_through_the_data_once_an_epoch_in_an_order_from_the_seed) {
  RunOptions options = digits();
  const auto trainer = make(options);
  const std::vector<float> parameters = random_parameters(trainer->parameter_count());
  std::vector<float> unused(parameters.size());
  const double all = trainer->evaluate(parameters).loss * kSamples;
  EXPECT_NEAR(trainer->accumulate(parameters, {0, kSamples}, unused), all, 1e-4 * all);
  EXPECT_NEAR(trainer->accumulate(parameters, {kSamples, kSamples}, unused), all, 1e-4 * all);

  const double first_epoch = trainer->accumulate(parameters, {0, 20}, unused);
  EXPECT_NE(trainer->accumulate(parameters, {kSamples, 20}, unused), first_epoch);
  options.seed = 2;
  EXPECT_NE(make(options)->accumulate(parameters, {0, 20}, unused), first_epoch);
}

TEST_F(TorchTrainer, begins_with_parameters_from_the_seed) {
  for (RunOptions options : {digits(), letters()}) {
    const std::vector<float> first = initial(*make(options));
    EXPECT_EQ(initial(*make(options)), first);
    options.seed = 2;
    EXPECT_NE(initial(*make(options)), first);
  }
}

TEST_F(TorchTrainer, tells_the_sizes_of_its_tensors) {
  const auto trainer = make(digits());
  const std::vector<std::uint64_t> expected = {400, 16, 4608, 32, 102400, 128, 1280, 10};
  EXPECT_EQ(trainer->tensor_sizes(), expected);
  EXPECT_EQ(trainer->parameter_count(), 108874U);
}

/// Trains as a single peer would; returns the evaluation at the end.
Evaluation train(Trainer& trainer, const RunOptions& options, double learning_rate, std::uint64_t rounds) {
  const auto optimizer = make_optimizer(trainer.groups(options.optimizer));
  std::vector<float> parameters = initial(trainer);
  const std::uint64_t batch = options.target_batch_size;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    std::vector<float> mean = gradient(trainer, parameters, {(round - 1) * batch, batch});
    for (float& g : mean) g /= static_cast<float>(batch);
    optimizer->apply(
        parameters, [&](const TakePiece& take) { take(0, mean); }, round, learning_rate);
  }
  return trainer.evaluate(parameters);
}

TEST_F(TorchTrainer, learns_digits) {
  const auto trainer = make(digits());
  const Evaluation before = trainer->evaluate(initial(*trainer));
  const Evaluation after = train(*trainer, digits(), 2e-3, 40);
  EXPECT_NEAR(before.loss, std::log(10), 0.3);
  EXPECT_LT(after.loss, 0.2);
  EXPECT_GT(after.accuracy.value(), 0.95);
}

TEST_F(TorchTrainer, learns_letters) {
  const auto trainer = make(letters());
  EXPECT_NEAR(trainer->evaluate(initial(*trainer)).loss, std::log(256), 0.5);
  const Evaluation after = train(*trainer, letters(), 3e-3, 50);
  EXPECT_LT(after.loss, 0.6);
  EXPECT_GT(after.accuracy.value(), 0.8);
}

TEST_F(TorchTrainer, trains_a_torch_script_file) {
  const RunOptions options = digits(classifier());
  const auto trainer = make(options);
  EXPECT_EQ(trainer->tensor_sizes(), std::vector<std::uint64_t>{7840});
  const Evaluation before = trainer->evaluate(initial(*trainer));
  EXPECT_NEAR(before.loss, std::log(10), 1e-4);
  const Evaluation after = train(*trainer, options, 2e-3, 60);
  EXPECT_LT(after.loss, 0.5);
  EXPECT_GT(after.accuracy.value(), 0.9);
}

TEST_F(TorchTrainer, evaluates_as_many_samples_as_asked_and_none_without_data) {
  RunOptions options = digits();
  const auto all = make(options);
  options.evaluation.samples = 10;
  const auto some = make(options);
  const std::vector<float> parameters = initial(*all);
  EXPECT_NE(all->evaluate(parameters).loss, some->evaluate(parameters).loss);
  options.data.test_inputs.clear();
  const Evaluation none = make(options)->evaluate(parameters);
  EXPECT_TRUE(std::isnan(none.loss));
  EXPECT_FALSE(none.accuracy);
}

/// logits = inputs w v^T with w and v tied, or not.
std::string product_source() {
  return R"(
    def forward(self, inputs, targets):
      x = torch.matmul(torch.matmul(inputs.flatten(1), self.w), self.v.transpose(0, 1))
      return torch.mean(torch.mul(x, x))
  )";
}

TEST_F(TorchTrainer, trains_tied_weights_as_one) {
  const at::Tensor weight = at::arange(784 * 3, at::kFloat).view({784, 3}).mul(1e-4);
  const auto tied = make(digits(script(product_source(), [&](torch::jit::Module& m) {
    add_parameter(m, "w", weight);
    add_parameter(m, "v", weight);
  })));
  const std::vector<float> parameters = initial(*tied);
  const std::vector<float> sum = gradient(*tied, parameters, {0, 8});
  ASSERT_EQ(tied->parameter_count(), 784U * 3);

  const auto apart = make(digits(script(product_source(), [&](torch::jit::Module& m) {
    add_parameter(m, "w", weight);
    add_parameter(m, "v", weight.clone());
  })));
  const std::vector<float> both = gradient(*apart, initial(*apart), {0, 8});
  ASSERT_EQ(apart->parameter_count(), 784U * 3 * 2);
  std::vector<float> expected(both.begin(), both.begin() + 784 * 3);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += both[784 * 3 + i];
  EXPECT_LT(relative_distance(sum, expected), 1e-5);
}

TEST_F(TorchTrainer, leaves_parameters_without_gradient_and_constant_buffers_alone) {
  const RunOptions options = digits(script(R"(
    def forward(self, inputs, targets):
      return torch.mean(inputs) * torch.sum(self.trained * self.kept + self.mask)
  )",
                                           [](torch::jit::Module& m) {
                                             add_parameter(m, "trained", at::ones({3}));
                                             add_parameter(m, "kept", at::ones({3}), false);
                                             m.register_buffer("mask", at::ones({3}));
                                           }));
  EXPECT_EQ(make(options)->parameter_count(), 3U);
}

/// A linear classifier behind BatchNorm, as torch.jit.script writes it: the statistics lie in a module
/// "norm".
void add_norm(torch::jit::Module& m) {
  torch::jit::Module norm("Norm");
  norm.register_attribute("training", c10::BoolType::get(), true);
  norm.register_buffer("running_mean", at::zeros({1}));
  norm.register_buffer("running_var", at::ones({1}));
  norm.register_buffer("num_batches_tracked", at::zeros({}, at::kLong));
  norm.define(R"(
    def forward(self, x):
      if self.training:
        self.num_batches_tracked.add_(1)
      mean, var = self.running_mean, self.running_var
      return torch.batch_norm(x, None, None, mean, var, self.training, 0.1, 1e-5, False)
  )");
  m.register_module("norm", norm);
  add_parameter(m, "weight", at::zeros({784, 10}));
}

constexpr const char* kNormed = R"(
  def logits(self, inputs):
    return torch.matmul(self.norm.forward(inputs.flatten(1).unsqueeze(1)).flatten(1), self.weight)
  def forward(self, inputs, targets):
    return torch.cross_entropy_loss(self.logits(inputs), targets)
  def correct(self, inputs, targets):
    return torch.sum(torch.eq(torch.argmax(self.logits(inputs), 1), targets))
)";

TEST_F(TorchTrainer, keeps_buffers_that_change_behind_the_parameters_without_optimizer_state) {
  const RunOptions options = digits(script(kNormed, add_norm));
  const auto trainer = make(options);
  EXPECT_EQ(trainer->tensor_sizes(), (std::vector<std::uint64_t>{7840, 1, 1, 1}));
  EXPECT_EQ(trainer->layout(),
            "group 0: weight (784, 10) float32\nbuffer: norm.running_mean (1) float32\n"
            "buffer: norm.running_var (1) float32\nbuffer: norm.num_batches_tracked () int64\n");
  const std::vector<float> parameters = initial(*trainer);
  EXPECT_EQ(std::vector<float>(parameters.end() - 3, parameters.end()), (std::vector<float>{0, 1, 0}));
  std::uint64_t state = 0;
  for (const auto& part : make_optimizer(trainer->groups({}))->state()) state += part.size();
  EXPECT_EQ(state, 2U * 7840);
}

TEST_F(TorchTrainer, weights_changes_of_buffers_with_the_samples_of_each_pass) {
  RunOptions options = digits(script(kNormed, add_norm));
  options.microbatch = 24;  // 64 samples: 24, 24 and 16
  const auto trainer = make(options);
  std::vector<float> parameters = initial(*trainer);
  parameters[7840] = 0.25F;
  const auto tail = [&](SampleSpan span) {
    const std::vector<float> sum = gradient(*trainer, parameters, span);
    return std::vector<float>(sum.end() - 3, sum.end());
  };
  const std::vector<float> a = tail({0, 24}), b = tail({24, 24}), c = tail({48, 16});
  const std::vector<float> whole = tail({0, 64});
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(whole[i], a[i] + b[i] + c[i]) << i;
  EXPECT_EQ(whole[2], 64) << "one more pass, whoever ran how many";
  EXPECT_NE(a[0] / 24, b[0] / 24);
  EXPECT_EQ(tail({0, 24}), a) << "after other passes";

  // Each pass moves the mean by a tenth of the way to that of its samples.
  const auto means = [&](float base) {
    parameters[7840] = base;
    return tail({0, 64})[0] / 64;
  };
  EXPECT_NEAR(means(0) - means(1), 0.1, 1e-5);
}

/// The values after they crossed the wire.
std::vector<float> rounded(const std::vector<float>& values, codec::Codec codec) {
  std::vector<std::byte> bytes(codec::encoded_bytes(codec, values.size()));
  codec::encode(codec, values, 1, bytes);
  std::vector<float> out(values.size());
  EXPECT_TRUE(codec::decode(codec, bytes, out));
  return out;
}

TEST_F(TorchTrainer, takes_the_changes_of_buffers_from_the_leader_alone_where_asked) {
  RunOptions options = digits(script(kNormed, add_norm));
  options.buffers = BufferUse::leader;
  options.microbatch = 16;
  const auto trainer = make(options);
  EXPECT_EQ(trainer->tensor_sizes(), (std::vector<std::uint64_t>{7840, 1, 1, 1, 1}));
  EXPECT_THAT(trainer->layout(), HasSubstr("(784, 10) float32\nled: samples () float32\nbuffer: norm."));
  const std::vector<float> begin = initial(*trainer);
  std::vector<float> led(begin.size()), slot(begin.size()), other(begin.size());
  trainer->lead(true);
  trainer->accumulate(begin, {0, 16}, led);
  trainer->accumulate(begin, {0, 16}, slot);
  trainer->lead(false);  // in the middle of a round: the rest of the slot does not count
  trainer->accumulate(begin, {16, 16}, slot);
  trainer->accumulate(begin, {32, 32}, other);
  EXPECT_EQ(std::vector<float>(slot.end() - 4, slot.end()), std::vector<float>(led.end() - 4, led.end()));
  EXPECT_NE(slot, led) << "its gradient counts";
  EXPECT_EQ(std::vector<float>(other.end() - 4, other.end()), std::vector<float>(4));
  for (const codec::Codec codec : {codec::Codec::fp32, codec::Codec::fp16, codec::Codec::bf16}) {
    std::vector<float> mean = slot;
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = (mean[i] + other[i]) / 64;
    mean = rounded(mean, codec);
    std::vector<float> parameters = begin;
    const auto optimizer = make_optimizer(trainer->groups({}));
    const auto apply = [&](Round round) {
      optimizer->apply(
          parameters, [&](const TakePiece& take) { take(0, mean); }, round, 0.1);
    };
    apply(1);
    EXPECT_EQ(parameters[7840], 0);
    EXPECT_NEAR(parameters[7841], led[7841] / 16, std::abs(led[7841] / 16) * 0.01);
    EXPECT_EQ(parameters[7843], 1) << "one pass, rounded alike";
    mean = rounded(other, codec);  // the leader's sum is left out
    const std::vector<float> before(parameters.end() - 4, parameters.end());
    apply(2);
    EXPECT_EQ(std::vector<float>(parameters.end() - 4, parameters.end()), before);
  }
}

TEST_F(TorchTrainer, evaluates_with_the_buffers_of_the_round) {
  const RunOptions options = digits(script(kNormed, add_norm));
  const auto trainer = make(options);
  std::vector<float> parameters = random_parameters(trainer->parameter_count());
  parameters[7840] = 0.2F;
  parameters[7841] = 0.05F;
  const double loss = trainer->evaluate(parameters).loss;
  gradient(*trainer, parameters, {0, 64});
  EXPECT_EQ(trainer->evaluate(parameters).loss, loss) << "after a pass that changed them";
  parameters[7841] = 0.5F;
  EXPECT_NE(trainer->evaluate(parameters).loss, loss);
  const Evaluation after = train(*trainer, options, 2e-3, 60);
  EXPECT_GT(after.accuracy.value(), 0.9);
}

TEST_F(TorchTrainer, shares_buffers_that_a_model_replaces_instead_of_changing_them) {
  const RunOptions options = digits(script(R"(
    def forward(self, inputs, targets):
      if self.training:
        self.seen = self.seen * 0.5 + 1.0
      loss = torch.mean(inputs) * torch.sum(self.weight)
      return loss + torch.sum(self.seen) + torch.sum(torch.exp(self.mask))
  )",
                                           [](torch::jit::Module& m) {
                                             add_parameter(m, "weight", at::ones({3}));
                                             m.register_buffer("seen", at::full({2}, 4.0));
                                             m.register_buffer("mask", at::full({2}, -INFINITY));
                                           }));
  const auto trainer = make(options);
  std::vector<float> parameters = initial(*trainer);
  ASSERT_EQ(parameters, (std::vector<float>{1, 1, 1, 4, 4})) << "a constant without a mean stays out";
  std::vector<float> sum = gradient(*trainer, parameters, {0, 10});
  EXPECT_EQ(sum[3], -10) << "10 samples times (0.5 * 4 + 1 - 4)";
  parameters[3] = 6;
  sum = gradient(*trainer, parameters, {0, 10});
  EXPECT_EQ(sum[3], -20);
}

TEST_F(TorchTrainer, refuses_buffers_that_have_no_mean_and_codecs_too_coarse_for_them) {
  RunOptions options = digits(script(kNormed, add_norm));
  options.codec = codec::Codec::int8;
  EXPECT_EQ(cause(options),
            options.model +
                ": training.codec int8: buffers that change (BatchNorm) are averaged with fp32, "
                "fp16 or bf16: rounding could make a variance negative");
  options.codec = codec::Codec::fp32;
  options.buffers = BufferUse::leader;
  EXPECT_EQ(cause(options), "none");
  options.norm_cap = 2;
  EXPECT_THAT(cause(options), HasSubstr(": training.norm_cap 2 with training.buffers leader: "));
  options.norm_cap = 0;
  options.error_feedback = true;
  EXPECT_THAT(cause(options), HasSubstr(": training.error_feedback true with training.buffers leader: "));
  const RunOptions flags = digits(script(R"(
    def forward(self, inputs, targets):
      if self.training:
        self.seen.fill_(1)
      return torch.mean(inputs) * torch.sum(self.weight)
  )",
                                         [](torch::jit::Module& m) {
                                           add_parameter(m, "weight", at::ones({3}));
                                           m.register_buffer("seen", at::zeros({2}, at::kBool));
                                         }));
  EXPECT_EQ(cause(flags),
            flags.model +
                ": training changes the buffer seen, which is Bool; only buffers of numbers can be "
                "averaged over the peers");
}

TEST_F(TorchTrainer, stops_at_a_buffer_that_only_a_later_pass_changes) {
  const RunOptions options = digits(script(R"(
    def forward(self, inputs, targets):
      if self.training and inputs.size(0) < 64:
        self.late.add_(1)
      return torch.mean(inputs) * torch.sum(self.weight)
  )",
                                           [](torch::jit::Module& m) {
                                             add_parameter(m, "weight", at::ones({3}));
                                             m.register_buffer("late", at::zeros({2}));
                                           }));
  const auto trainer = make(options);
  const std::vector<float> parameters = initial(*trainer);
  gradient(*trainer, parameters, {0, 64});
  try {
    gradient(*trainer, parameters, {64, 8});
    FAIL() << "expected an error";
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(),
                HasSubstr(": training changes the buffer late with samples 64 to 71 of the run, while "));
  }
}

TEST_F(TorchTrainer, learns_tokens) {
  std::string tokens;
  for (int i = 0; i < 6000; ++i) tokens += {static_cast<char>(i % 3 == 0 ? 7 : 200 + i % 3), '\0'};
  std::ofstream(folder_ + "/tokens", std::ios::binary) << tokens;
  RunOptions options = letters();
  options.data = {.kind = DataKind::tokens, .tokens = folder_ + "/tokens", .context = 16};
  const auto trainer = make(options);
  EXPECT_THAT(trainer->sources(), StartsWith("data: 5700 uint16 tokens, digest "));
  EXPECT_GT(train(*trainer, options, 3e-3, 30).accuracy.value(), 0.9);
}

TEST_F(TorchTrainer, refuses_models_that_it_cannot_train) {
  const auto refuse = [&](const std::string& source,
                          const std::function<void(torch::jit::Module&)>& prepare) {
    const RunOptions options = digits(script(source, prepare));
    const std::string message = cause(options);
    EXPECT_THAT(message, StartsWith(options.model));
    return message;
  };
  const auto weight = [](at::ScalarType type) {
    return [type](torch::jit::Module& m) { add_parameter(m, "weight", at::ones({784, 10}, type)); };
  };
  EXPECT_THAT(refuse("def forward(self, x, y):\n  return torch.sum(self.weight)", weight(at::kDouble)),
              HasSubstr(": parameter weight is Double; only float32 can be trained"));
  EXPECT_THAT(refuse("def forward(self, x, y):\n  return torch.mean(x)", [](torch::jit::Module&) {}),
              EndsWith(": no parameters to train (a frozen module has none)"));
  EXPECT_THAT(
      refuse("def forward(self, x):\n  return torch.mean(x)", weight(at::kFloat)),
      EndsWith(": forward takes 1 arguments besides self; expected forward(self, inputs: Tensor, targets: "
               "Tensor) -> Tensor"));
  EXPECT_THAT(refuse("def predict(self, x):\n  return torch.mean(x)", weight(at::kFloat)),
              HasSubstr(": has no method forward; expected forward(self, inputs"));
  EXPECT_THAT(
      refuse("def forward(self, x, y):\n  return torch.matmul(x.flatten(1), self.weight)",
             weight(at::kFloat)),
      EndsWith(
          " with inputs float32 [1, 28, 28] and targets int64 [1]: forward returned a tensor of shape [1, "
          "10], not one number: the mean loss of the batch"));
  EXPECT_THAT(refuse("def forward(self, x, y):\n  return torch.mean(torch.matmul(x, self.weight))",
                     weight(at::kFloat)),
              HasSubstr(" with inputs float32 [1, 28, 28] and targets int64 [1]: "));
  EXPECT_THAT(refuse("def forward(self, x, y):\n  return torch.mean(x)", weight(at::kFloat)),
              HasSubstr("does not require grad"));
}

TEST_F(TorchTrainer, refuses_partly_shared_weights) {
  const at::Tensor memory = at::ones({784 * 3 + 3});
  const RunOptions options = digits(script(product_source(), [&](torch::jit::Module& m) {
    add_parameter(m, "w", memory.narrow(0, 0, 784 * 3).view({784, 3}));
    add_parameter(m, "v", memory.narrow(0, 3, 784 * 3).view({784, 3}));
  }));
  EXPECT_THAT(cause(options), HasSubstr("parameters w and v share a part of their memory"));
}

TEST_F(TorchTrainer, refuses_files_that_are_no_models) {
  RunOptions options = digits(folder_ + "/labels");
  EXPECT_THAT(cause(options), StartsWith(options.model + ": not a TorchScript file"));
  options = digits();
  options.data.train_inputs = "/nowhere/pictures";
  EXPECT_THAT(cause(options), StartsWith("/nowhere/pictures: cannot be opened"));
}

TEST_F(TorchTrainer, names_shapes_when_the_data_is_not_for_the_model) {
  write_idx(folder_ + "/small", {kSamples, 2, 2}, std::string(kSamples * 4, '\1'));
  RunOptions options = digits();
  options.data.train_inputs = folder_ + "/small";
  EXPECT_THAT(cause(options), StartsWith("mnist-cnn with inputs float32 [1, 2, 2] and targets int64 [1]: "));
}

TEST_F(TorchTrainer, trains_the_example_of_an_own_model) {
  const std::string path = folder_ + "/own.pt";
  const std::string command = "/usr/bin/python3 " TW_SOURCE_DIR "/examples/own_model/export.py " + path;
  if (std::system(command.c_str()) != 0) {
    ASSERT_NE(std::system("/usr/bin/python3 -c 'import torch'"), 0) << "fails: " << command;
    GTEST_SKIP() << "needs PyTorch for /usr/bin/python3";
  }
  const auto trainer = make(digits(path));
  const Evaluation after = train(*trainer, digits(path), 3e-3, 60);
  EXPECT_LT(after.loss, 0.5);
  EXPECT_GT(after.accuracy.value(), 0.9);
}

}  // namespace
}  // namespace tw::train
