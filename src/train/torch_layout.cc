// SPDX-License-Identifier: Apache-2.0
#include "train/torch_layout.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

namespace tw::train {
namespace {

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

}  // namespace

bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() && a.strides() == b.strides();
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

}  // namespace tw::train
