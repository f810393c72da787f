// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <string>

#include "base/check.h"
#include "base/prng.h"
#include "train/torch_model.h"

namespace tw::train {
namespace {

/// Parameters with their initial values; the models below only use them.
class BuiltIn : public TorchModel {
 public:
  const NamedTensors& parameters() const override { return parameters_; }

  NamedTensors buffers() const override { return {}; }

  NamedTensors state() const override { return parameters_; }

  void set_buffer(std::size_t /*number*/, const at::Tensor& /*value*/) override {
    TW_CHECK(false && "a model without buffers");
  }

  void set_training(bool /*training*/) override {}

  at::Tensor loss(const at::Tensor& inputs, const at::Tensor& targets) override {
    return mean_loss(logits(inputs), targets);
  }

  BatchResult judge(const at::Tensor& inputs, const at::Tensor& targets) override {
    const at::Tensor answers = logits(inputs);
    return {mean_loss(answers, targets).item<double>(), answers.argmax(-1).eq(targets).sum().item<double>()};
  }

 protected:
  explicit BuiltIn(std::uint64_t seed) : prng_(seed) {}

  /// Shape of the targets, and one more dimension for the classes.
  virtual at::Tensor logits(const at::Tensor& inputs) const = 0;

  at::Tensor uniform(const std::string& name, at::IntArrayRef sizes, double bound) {
    return add(name, sizes, [&] { return (2 * prng_.uniform() - 1) * bound; });
  }

  at::Tensor constant(const std::string& name, at::IntArrayRef sizes, double value) {
    return add(name, sizes, [value] { return value; });
  }

  struct Affine {
    at::Tensor weight;
    at::Tensor bias;

    at::Tensor operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }
  };

  /// PyTorch's default for linear and convolution layers: uniform within 1 / sqrt(inputs of one output).
  Affine affine(const std::string& name, at::IntArrayRef sizes) {
    double fan_in = 1;
    for (std::size_t i = 1; i < sizes.size(); ++i) fan_in *= static_cast<double>(sizes[i]);
    const double bound = 1 / std::sqrt(fan_in);
    at::Tensor weight = uniform(name + ".weight", sizes, bound);
    return {weight, uniform(name + ".bias", {sizes[0]}, bound)};
  }

 private:
  template <class Draw>
  at::Tensor add(const std::string& name, at::IntArrayRef sizes, Draw draw) {
    at::Tensor tensor = at::empty(sizes, at::kFloat);
    float* values = tensor.data_ptr<float>();
    for (std::int64_t i = 0; i < tensor.numel(); ++i) values[i] = static_cast<float>(draw());
    tensor.set_requires_grad(true);
    parameters_.emplace_back(name, tensor);
    return tensor;
  }

  static at::Tensor mean_loss(const at::Tensor& logits, const at::Tensor& targets) {
    return at::cross_entropy_loss(logits.flatten(0, -2), targets.flatten());
  }

  Prng prng_;
  NamedTensors parameters_;
};

/// Two convolutions and two linear layers, 109 k parameters; inputs [samples, 28, 28] in [0, 1].
class MnistCnn : public BuiltIn {
 public:
  explicit MnistCnn(std::uint64_t seed) : BuiltIn(seed) {}

 protected:
  at::Tensor logits(const at::Tensor& inputs) const override {
    // Mean and standard deviation of the pixels of MNIST's training part.
    at::Tensor x = (inputs.view({inputs.size(0), 1, 28, 28}) - 0.1307) / 0.3081;
    x = at::conv2d(x, first_.weight, first_.bias);
    x = at::max_pool2d(x, {2, 2}).relu_();
    x = at::conv2d(x, second_.weight, second_.bias);
    x = at::max_pool2d(x, {2, 2}).relu_();
    return output_(hidden_(x.flatten(1)).relu_());
  }

 private:
  Affine first_ = affine("first", {16, 1, 5, 5});
  Affine second_ = affine("second", {32, 16, 3, 3});
  Affine hidden_ = affine("hidden", {128, 32 * 5 * 5});
  Affine output_ = affine("output", {10, 128});
};

/// Pre-norm decoder over bytes, 0.6 M parameters; inputs [samples, context]. Input and output embedding are
/// one.
class CharTransformer : public BuiltIn {
 public:
  CharTransformer(std::uint64_t seed, std::int64_t context) : BuiltIn(seed), context_(context) {}

 protected:
  at::Tensor logits(const at::Tensor& inputs) const override {
    at::Tensor x = at::embedding(tokens_, inputs) + positions_.narrow(0, 0, inputs.size(1));
    for (const Block& block : blocks_) {
      x = x + attention(block, normalised(block.before_attention, x));
      x = x + block.contract(at::gelu(block.expand(normalised(block.before_expansion, x))));
    }
    return at::linear(normalised(before_output_, x), tokens_);
  }

 private:
  static constexpr std::int64_t kWidth = 128;
  static constexpr std::int64_t kHeads = 4;
  static constexpr std::size_t kBlocks = 3;
  // Uniform with the usual standard deviation of 0.02.
  static constexpr double kEmbeddingBound = 0.0346;

  struct Block {
    Affine before_attention, queries_keys_values, mix, before_expansion, expand, contract;
  };

  Affine norm(const std::string& name) {
    at::Tensor gain = constant(name + ".weight", {kWidth}, 1);
    return {gain, constant(name + ".bias", {kWidth}, 0)};
  }

  Block block(int number) {
    const std::string at = "block" + std::to_string(number) + ".";
    // Braced initialisers are evaluated in their order, which is the order of the flat vector.
    return {norm(at + "before_attention"),
            affine(at + "queries_keys_values", {3 * kWidth, kWidth}),
            affine(at + "mix", {kWidth, kWidth}),
            norm(at + "before_expansion"),
            affine(at + "expand", {4 * kWidth, kWidth}),
            affine(at + "contract", {kWidth, 4 * kWidth})};
  }

  static at::Tensor normalised(const Affine& norm, const at::Tensor& x) {
    return at::layer_norm(x, {kWidth}, norm.weight, norm.bias);
  }

  at::Tensor attention(const Block& block, const at::Tensor& x) const {
    const std::int64_t samples = x.size(0);
    const std::int64_t length = x.size(1);
    const at::Tensor all = block.queries_keys_values(x)
                               .view({samples, length, 3, kHeads, kWidth / kHeads})
                               .permute({2, 0, 3, 1, 4});
    const at::Tensor scores =
        at::matmul(all[0] * (1 / std::sqrt(double{kWidth / kHeads})), all[1].transpose(-2, -1));
    const at::Tensor hidden = future_.narrow(0, 0, length).narrow(1, 0, length);
    const at::Tensor weights = at::softmax(scores + hidden, -1);
    return block.mix(at::matmul(weights, all[2]).transpose(1, 2).reshape({samples, length, kWidth}));
  }

  std::int64_t context_;
  // Minus infinity where a position would see a later one.
  at::Tensor future_ = at::full({context_, context_}, -INFINITY).triu(1);
  at::Tensor tokens_ = uniform("tokens", {256, kWidth}, kEmbeddingBound);
  at::Tensor positions_ = uniform("positions", {context_, kWidth}, kEmbeddingBound);
  std::array<Block, kBlocks> blocks_ = {block(0), block(1), block(2)};
  Affine before_output_ = norm("before_output");
};

}  // namespace

std::unique_ptr<TorchModel> make_built_in_model(const RunOptions& options) {
  if (options.model == "mnist-cnn") return std::make_unique<MnistCnn>(options.seed);
  TW_CHECK(options.model == "char-transformer");
  return std::make_unique<CharTransformer>(options.seed, static_cast<std::int64_t>(options.data.context));
}

bool is_built_in_model(const std::string& model) {
  return model == "mnist-cnn" || model == "char-transformer";
}

}  // namespace tw::train
