// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "base/text/fields.h"
#include "base/text/printable.h"
#include "data/mapped_file.h"
#include "data/safetensors.h"
#include "train/torch_layout.h"
#include "train/torch_model.h"

namespace tw::train {
namespace {

struct NamedType {
  std::string_view name;
  at::ScalarType type;
};

constexpr NamedType kFileTypes[] = {{"F32", at::kFloat},  {"F16", at::kHalf}, {"BF16", at::kBFloat16},
                                    {"F64", at::kDouble}, {"I64", at::kLong}, {"I32", at::kInt},
                                    {"I16", at::kShort},  {"I8", at::kChar},  {"U8", at::kByte},
                                    {"BOOL", at::kBool}};

std::optional<at::ScalarType> file_type(std::string_view name) {
  const auto found = std::ranges::find(kFileTypes, name, &NamedType::name);
  return found == std::end(kFileTypes) ? std::nullopt : std::optional(found->type);
}

std::string file_types_for(at::ScalarType type) {
  if (type == at::kFloat) return "F32, F16 or BF16";
  const auto found = std::ranges::find(kFileTypes, type, &NamedType::type);
  return found == std::end(kFileTypes) ? at::toString(type) : std::string(found->name);
}

/// Whether every value of the file is one of the model's.
bool fits(at::ScalarType model, at::ScalarType file) {
  return model == file || (model == at::kFloat && (file == at::kHalf || file == at::kBFloat16));
}

std::vector<std::uint64_t> shape_of(const at::Tensor& tensor) {
  return {tensor.sizes().begin(), tensor.sizes().end()};
}

class Start {
 public:
  Start(TorchModel& model, const data::SafetensorsHeader& header, std::span<const std::byte> file)
      : trained_(model.parameters()), header_(header), data_(file.subspan(header.bytes)) {
    for (const auto& [name, tensor] : model.state()) {
      named_.emplace(name, tensor);
      names_.push_back(name);
    }
  }

  Status load() {
    const at::NoGradGuard no_gradients;
    for (const data::StoredTensor& stored : header_.tensors) {
      if (Status taken = take(stored); !taken) return taken;
    }
    for (const auto& [name, tensor] : trained_) {
      if (!loaded(tensor)) return missing(name, tensor);
    }
    return Unit{};
  }

 private:
  Status take(const data::StoredTensor& stored) {
    const auto fault = [&](const std::string& what) {
      return Error{fmt::format("tensor {}: {}", printable_line(stored.name), what)};
    };
    const auto found = named_.find(stored.name);
    if (found == named_.end())
      return fault("the model has none of that name" +
                   did_you_mean(stored.name, std::span<const std::string>(names_)));
    at::Tensor& tensor = found->second;
    if (const auto expected = shape_of(tensor); expected != stored.shape)
      return fault(
          fmt::format("expected {}, found {}", data::shape_text(expected), data::shape_text(stored.shape)));
    const auto type = file_type(stored.type);
    if (!type || !fits(tensor.scalar_type(), *type))
      return fault(fmt::format("expected {}, found {}", file_types_for(tensor.scalar_type()), stored.type));
    at::Tensor values = at::empty(tensor.sizes(), *type);  // in the file they may lie at any byte
    if (stored.bytes > 0) std::memcpy(values.data_ptr(), data_.data() + stored.first, stored.bytes);
    tensor.copy_(values);
    loaded_.push_back(tensor);
    return Unit{};
  }

  /// By this name or by another one of the same memory.
  bool loaded(const at::Tensor& tensor) const {
    return tensor.numel() == 0 ||
           std::ranges::any_of(loaded_, [&](const at::Tensor& other) { return same_memory(tensor, other); });
  }

  Error missing(const std::string& name, const at::Tensor& tensor) const {
    std::vector<std::string> there;
    for (const data::StoredTensor& stored : header_.tensors) there.push_back(stored.name);
    return Error{fmt::format("no tensor {}; expected one of {}{}", name, data::shape_text(shape_of(tensor)),
                             did_you_mean(name, std::span<const std::string>(there)))};
  }

  NamedTensors trained_;
  const data::SafetensorsHeader& header_;
  std::span<const std::byte> data_;
  std::map<std::string, at::Tensor, std::less<>> named_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> loaded_;
};

}  // namespace

Result<Digest> load_start(const std::string& path, TorchModel& model) {
  const auto file = data::MappedFile::open(path);
  if (!file) return file.error();
  const std::span<const std::byte> bytes = file.value()->bytes();
  const auto header = data::read_safetensors_header(bytes);
  if (!header) return Error{fmt::format("{}: {}", path, header.error().message)};
  if (const Status loaded = Start(model, header.value(), bytes).load(); !loaded)
    return Error{fmt::format("{}: {}", path, loaded.error().message)};
  return digest_of(bytes);
}

}  // namespace tw::train
