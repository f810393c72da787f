// SPDX-License-Identifier: Apache-2.0
#include "train/torch_buffers.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/check.h"

namespace tw::train {
namespace {

/// Floats before the buffers that only the leader changes.
constexpr std::uint64_t kLedFloats = 1;

/// "layer1.0.bn" of "layer1.0.bn.running_mean".
std::string_view module_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return name.substr(0, dot == std::string_view::npos ? 0 : dot);
}

bool has_mean(at::ScalarType type) {
  return at::isFloatingType(type) || at::isIntegralType(type, /*includeBool=*/false);
}

std::string type_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "float32";
    case at::kLong:
      return "int64";
    default:
      return at::toString(type);
  }
}

/// The same bits: NaN is itself.
bool unchanged(const at::Tensor& now, const at::Tensor& then) {
  if (now.sizes() != then.sizes() || now.scalar_type() != then.scalar_type()) return false;
  const at::Tensor a = now.contiguous(), b = then.contiguous();
  return a.nbytes() == 0 || std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

}  // namespace

struct TorchBuffers::Constant {
  std::size_t number;  // in TorchModel::buffers()
  std::string name;
  at::Tensor initial;
};

struct TorchBuffers::Tracked {
  std::size_t number;
  std::string name;
  at::Tensor initial;
  at::Tensor own;  // what the model gets: a model may put another tensor in its place
  std::int64_t first;

  std::int64_t size() const { return initial.numel(); }

  /// Its part of the tail as the model sees it.
  at::Tensor values(std::span<const float> tail) const {
    // Torch has no views of constant memory; nothing here writes to it.
    auto* begin = const_cast<float*>(tail.data()) + first;
    const at::Tensor floats = at::from_blob(begin, initial.sizes(), at::kFloat);
    const bool whole = at::isIntegralType(initial.scalar_type(), false);
    return (whole ? floats.round() : floats).to(initial.scalar_type());
  }
};

TorchBuffers::TorchBuffers(TorchModel& model, BufferUse use) : model_(model), use_(use) {
  const NamedTensors all = model.buffers();
  for (std::size_t i = 0; i < all.size(); ++i)
    constants_.push_back({i, all[i].first, all[i].second.detach().clone()});
}

TorchBuffers::~TorchBuffers() = default;

Status TorchBuffers::find_changed() {
  const at::NoGradGuard no_gradients;
  const NamedTensors now = model_.buffers();
  std::set<std::string_view> modules;
  for (const Constant& buffer : constants_) {
    if (unchanged(now[buffer.number].second, buffer.initial)) continue;
    const at::ScalarType type = buffer.initial.scalar_type();
    if (!has_mean(type))
      return Error{
          fmt::format("training changes the buffer {}, which is {}; only buffers of numbers can be "
                      "averaged over the peers",
                      buffer.name, at::toString(type))};
    modules.insert(module_of(buffer.name));
  }
  const auto travels = [&](const Constant& buffer) {
    return modules.contains(module_of(buffer.name)) && buffer.initial.numel() > 0 &&
           has_mean(buffer.initial.scalar_type()) && at::isfinite(buffer.initial).all().item<bool>();
  };
  for (const Constant& buffer : constants_) {
    model_.set_buffer(buffer.number, buffer.initial.clone());
    if (!travels(buffer)) continue;
    if (size_ == 0 && use_ == BufferUse::leader) size_ = kLedFloats;
    tracked_.push_back({buffer.number, buffer.name, buffer.initial, buffer.initial.clone(),
                        static_cast<std::int64_t>(size_)});
    size_ += static_cast<std::uint64_t>(buffer.initial.numel());
  }
  std::set<std::string_view> names;
  for (const Tracked& buffer : tracked_) names.insert(buffer.name);
  std::erase_if(constants_, [&](const Constant& buffer) { return names.contains(buffer.name); });
  return Unit{};
}

std::vector<std::uint64_t> TorchBuffers::tensor_sizes() const {
  if (size_ == 0) return {};
  std::vector<std::uint64_t> sizes(use_ == BufferUse::leader ? 1 : 0, kLedFloats);
  for (const Tracked& buffer : tracked_) sizes.push_back(static_cast<std::uint64_t>(buffer.size()));
  return sizes;
}

std::optional<ParameterGroup> TorchBuffers::group() const {
  if (size_ == 0) return std::nullopt;
  const bool shared = use_ == BufferUse::leader;
  return one_group({.kind = shared ? OptimizerKind::share_average : OptimizerKind::average}, tensor_sizes());
}

std::string TorchBuffers::layout() const {
  std::string lines = size_ > 0 && use_ == BufferUse::leader ? "led: samples () float32\n" : "";
  for (const Tracked& buffer : tracked_)
    lines += fmt::format("buffer: {} ({}) {}\n", buffer.name, fmt::join(buffer.initial.sizes(), ", "),
                         type_name(buffer.initial.scalar_type()));
  return lines;
}

void TorchBuffers::initial(std::span<float> tail) const {
  TW_CHECK(tail.size() == size_);
  std::ranges::fill(tail, 0.0F);
  for (const Tracked& buffer : tracked_) {
    const at::Tensor values = buffer.initial.to(at::kFloat).contiguous();
    std::copy_n(values.data_ptr<float>(), buffer.size(), tail.begin() + buffer.first);
  }
}

void TorchBuffers::load(std::span<const float> tail) {
  TW_CHECK(tail.size() == size_);
  const at::NoGradGuard no_gradients;
  for (Tracked& buffer : tracked_) {
    buffer.own.copy_(buffer.values(tail));
    model_.set_buffer(buffer.number, buffer.own);
  }
}

void TorchBuffers::add_changes(std::span<const float> tail, std::uint64_t samples,
                               std::span<float> sum) const {
  TW_CHECK(tail.size() == size_ && sum.size() == size_);
  if (tracked_.empty() || (use_ == BufferUse::leader && !leads_)) return;
  if (use_ == BufferUse::leader) sum.front() += static_cast<float>(samples);
  const at::NoGradGuard no_gradients;
  const NamedTensors now = model_.buffers();
  for (const Tracked& buffer : tracked_) {
    const at::Tensor change =
        now[buffer.number].second.to(at::kDouble).sub(buffer.values(tail).to(at::kDouble));
    at::from_blob(sum.data() + buffer.first, buffer.initial.sizes(), at::kFloat)
        .add_(change.mul(static_cast<double>(samples)).to(at::kFloat));
  }
}

std::string TorchBuffers::drifted() const {
  if (constants_.empty()) return "";
  const at::NoGradGuard no_gradients;
  const NamedTensors now = model_.buffers();
  for (const Constant& buffer : constants_) {
    if (!unchanged(now[buffer.number].second, buffer.initial)) return buffer.name;
  }
  return "";
}

}  // namespace tw::train
