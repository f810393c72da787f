// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <torch/script.h>

#include <algorithm>

#include "train/torch_layout.h"
#include "train/torch_model.h"

namespace tw::train {
namespace {

constexpr const char* kSignature = "forward(self, inputs: Tensor, targets: Tensor) -> Tensor";

class TorchScript : public TorchModel {
 public:
  explicit TorchScript(torch::jit::Module module) : module_(std::move(module)) {
    for (const auto& parameter : module_.named_parameters()) {
      if (parameter.value.requires_grad()) parameters_.emplace_back(parameter.name, parameter.value);
    }
    find_buffers();
  }

  const NamedTensors& parameters() const override { return parameters_; }

  NamedTensors buffers() const override {
    NamedTensors all;
    for (const Buffer& buffer : buffers_) {
      const Place& place = buffer.places.front();
      all.emplace_back(buffer.path, place.owner.attr(place.name).toTensor());
    }
    return all;
  }

  NamedTensors state() const override {
    NamedTensors all;
    for (const auto& parameter : module_.named_parameters())
      all.emplace_back(parameter.name, parameter.value);
    for (const auto& buffer : module_.named_buffers()) all.emplace_back(buffer.name, buffer.value);
    return all;
  }

  void set_buffer(std::size_t number, const at::Tensor& value) override {
    for (Place& place : buffers_.at(number).places) place.owner.setattr(place.name, value);
  }

  void set_training(bool training) override { module_.train(training); }

  at::Tensor loss(const at::Tensor& inputs, const at::Tensor& targets) override {
    const torch::jit::IValue value = module_.forward({inputs, targets});
    if (!value.isTensor()) throw std::runtime_error("forward returned no tensor but " + value.tagKind());
    return value.toTensor();
  }

  BatchResult judge(const at::Tensor& inputs, const at::Tensor& targets) override {
    BatchResult result{.mean_loss = loss(inputs, targets).item<double>()};
    if (const auto method = module_.find_method("correct")) {
      const torch::jit::IValue count = (*method)({inputs, targets});
      result.correct =
          count.isTensor() ? count.toTensor().sum().item<double>() : count.toScalar().to<double>();
    }
    return result;
  }

 private:
  struct Place {
    torch::jit::Module owner;
    std::string name;
  };

  struct Buffer {
    std::string path;           // the name of the first place, from the whole model on
    std::vector<Place> places;  // more than one share its memory
  };

  void find_buffers() {
    std::vector<at::Tensor> seen;
    for (const auto& module : module_.named_modules()) {
      for (const auto& buffer : module.value.named_buffers(/*recurse=*/false)) {
        const auto same = [&](const at::Tensor& other) { return same_memory(other, buffer.value); };
        const auto twin = std::find_if(seen.begin(), seen.end(), same);
        const Place place{module.value, buffer.name};
        if (twin != seen.end() && buffer.value.numel() > 0) {
          buffers_[static_cast<std::size_t>(twin - seen.begin())].places.push_back(place);
          continue;
        }
        seen.push_back(buffer.value);
        buffers_.push_back({module.name.empty() ? buffer.name : module.name + "." + buffer.name, {place}});
      }
    }
  }

  torch::jit::Module module_;
  NamedTensors parameters_;
  std::vector<Buffer> buffers_;
};

/// Empty when forward takes inputs and targets.
std::string complaint_about_forward(const torch::jit::Module& module) {
  const auto forward = module.find_method("forward");
  if (!forward) return fmt::format("has no method forward; expected {}", kSignature);
  std::size_t required = 0;
  for (const c10::Argument& argument : forward->function().getSchema().arguments()) {
    if (!argument.default_value()) ++required;
  }
  const std::size_t accepted = forward->function().getSchema().arguments().size();
  if (required <= 3 && accepted >= 3) return "";
  return fmt::format("forward takes {} arguments besides self; expected {}", accepted - 1, kSignature);
}

/// The first line: the rest is a trace of libtorch's own calls.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

Result<std::unique_ptr<TorchModel>> load_torch_script(const std::string& path) {
  try {
    torch::jit::Module module = torch::jit::load(path, torch::kCPU);
    if (const std::string cause = complaint_about_forward(module); !cause.empty()) {
      return Error{fmt::format("{}: {}", path, cause)};
    }
    return std::unique_ptr<TorchModel>(std::make_unique<TorchScript>(std::move(module)));
  } catch (const c10::Error& e) {
    return Error{
        fmt::format("{}: not a TorchScript file (write one with torch.jit.script(module).save(path)): {}",
                    path, first_line(e.what_without_backtrace()))};
  }
}

}  // namespace tw::train
