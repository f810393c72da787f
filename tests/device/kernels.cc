// SPDX-License-Identifier: Apache-2.0
// What PyTorch asks of the simulated device. A kernel is the CPU's, on the shadows of its tensors, as a job
// of the current stream; "meta" tensors say before which shapes come out. A kernel whose results depend on
// values runs at once.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <cstring>

#include "device.h"
#include "memory.h"
#include "timeline.h"

namespace sim {
namespace {

using at::Tensor;
using torch::jit::Stack;

constexpr double kDeviceRate = 600e9;  // bytes/s of the device's memory (A10)
constexpr double kKernel = 3e-6;       // the shortest kernel, s
constexpr double kBusRate = 25e9;      // bytes/s of PCIe 4 x16
constexpr double kCopy = 10e-6;        // the shortest copy, s

Tensor shadow_of(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_privateuseone()) return tensor;
  void* there = memory().shadow(tensor.mutable_data_ptr());
  return at::from_blob(there, tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
}

// For a job: a number of the host is read at the launch.
Tensor argument_of(const Tensor& tensor) {
  if (!tensor.defined() || tensor.is_privateuseone()) return shadow_of(tensor);
  Tensor kept = tensor.clone();
  kept.unsafeGetTensorImpl()->set_wrapped_number(tensor.unsafeGetTensorImpl()->is_wrapped_number());
  return kept;
}

Tensor meta_of(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_privateuseone()) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

template <typename Change>
c10::IValue changed(const c10::IValue& value, const Change& change, at::Device device) {
  if (value.isTensor()) return change(value.toTensor());
  if (value.isDevice()) return device;
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorVector()) list.push_back(change(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const std::optional<Tensor>& tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? std::optional<Tensor>(change(*tensor)) : std::nullopt);
    return list;
  }
  return value;
}

template <typename Change>
Stack changed(const Stack& values, const Change& change, at::Device device) {
  Stack found;
  for (const c10::IValue& value : values) found.push_back(changed(value, change, device));
  return found;
}

template <typename See>
void each_tensor(const c10::IValue& value, const See& see) {
  changed(
      value,
      [&see](const Tensor& tensor) {
        if (tensor.defined()) see(tensor);
        return tensor;
      },
      at::kCPU);
}

// A call on its way: arguments, and results as they become known.
class Launch {
 public:
  Launch(const c10::OperatorHandle& op, Stack* stack) : op_(op), stack_(stack) {
    const size_t count = op.schema().arguments().size();
    given_.assign(stack->end() - static_cast<int64_t>(count), stack->end());
    torch::jit::drop(*stack, count);
    for (const c10::IValue& value : given_) {
      each_tensor(value, [this](const Tensor& tensor) {
        bytes_ += static_cast<double>(tensor.nbytes());
        if (tensor.is_privateuseone()) see(tensor.device());
      });
      if (value.isDevice() && value.toDevice().is_privateuseone()) see(value.toDevice());
    }
    if (!device_ || !device_->has_index()) device_ = at::Device(at::kPrivateUse1, current_device());
  }

  void run() {
    const c10::DeviceGuard guard(*device_);
    std::optional<Stack> shapes = shapes_of_results();
    const int stream = current_stream(device_->index());
    if (!shapes) {
      timeline().finish_stream(stream);
      shapes = computed(op_, changed(given_, argument_of, at::kCPU));
      results_from(*shapes);
      give(stream, [values = *shapes, places = new_] { store(values, places); });
      return;
    }
    resize(*shapes);
    results_from(*shapes);
    // After a resize an argument may be elsewhere.
    give(stream, [op = op_, arguments = changed(given_, argument_of, at::kCPU), places = new_] {
      store(computed(op, arguments), places);
    });
  }

 private:
  // Where the values of a result go: nothing for one that an argument is.
  using Places = std::vector<c10::IValue>;

  void see(at::Device device) {
    if (!device_) device_ = device;
    if (device.has_index() && device != *device_) other_ = current_stream(device.index());
  }

  static Stack computed(const c10::OperatorHandle& op, const Stack& arguments) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    Stack stack = arguments;
    op.callBoxed(stack);
    return stack;
  }

  static void store(const Stack& values, const Places& places) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    for (size_t at = 0; at < places.size(); ++at) {
      if (places[at].isTensor() && places[at].toTensor().defined())
        places[at].toTensor().copy_(values[at].toTensor());
      if (!places[at].isTensorList()) continue;
      const auto to = places[at].toTensorVector(), from = values[at].toTensorVector();
      for (size_t one = 0; one < to.size(); ++one) to[one].copy_(from[one]);
    }
  }

  // None: they depend on values, or are no tensors.
  std::optional<Stack> shapes_of_results() const {
    for (const c10::Argument& result : op_.schema().returns()) {
      const auto kind = result.type()->kind();
      if (kind != c10::TypeKind::TensorType && kind != c10::TypeKind::ListType) return std::nullopt;
    }
    try {
      const at::AutoDispatchBelowADInplaceOrView guard;
      Stack stack = changed(given_, meta_of, at::kMeta);
      op_.callBoxed(stack);
      return stack;
    } catch (const c10::Error&) {
      return std::nullopt;  // the CPU's kernel says what is wrong, if anything
    }
  }

  void resize(const Stack& shapes) const {
    const auto& returns = op_.schema().returns();
    for (size_t at = 0; at < returns.size(); ++at) {
      const int which = argument_of_result(at);
      if (which < 0 || !given_[which].isTensor()) continue;
      const Tensor& there = given_[which].toTensor();
      if (there.sizes() != shapes[at].toTensor().sizes()) there.resize_(shapes[at].toTensor().sizes());
    }
  }

  // The argument that a result is; -1: it is new.
  int argument_of_result(size_t at) const {
    const c10::AliasInfo* alias = op_.schema().returns()[at].alias_info();
    if (alias == nullptr) return -1;
    TORCH_CHECK(alias->isWrite(), "sim: ", op_.schema().name(),
                " gives a view and needs a kernel of its own");
    const auto& arguments = op_.schema().arguments();
    for (size_t which = 0; which < arguments.size(); ++which)
      if (arguments[which].alias_info() && arguments[which].alias_info()->beforeSets() == alias->beforeSets())
        return static_cast<int>(which);
    TORCH_CHECK(false, "sim: which argument is the result of ", op_.schema().name(), "?");
  }

  void results_from(const Stack& shapes) {
    const auto made = [this](const Tensor& like) {
      if (!like.defined()) return like;
      bytes_ += static_cast<double>(like.nbytes());
      return at::empty_strided(like.sizes(), like.strides(),
                               like.options().device(*device_).requires_grad(false));
    };
    for (size_t at = 0; at < shapes.size(); ++at) {
      const int which = argument_of_result(at);
      new_.emplace_back();
      if (which >= 0) {
        torch::jit::push(*stack_, given_[which]);
        continue;
      }
      const c10::IValue result = changed(shapes[at], made, *device_);
      new_.back() = changed(result, shadow_of, at::kCPU);
      torch::jit::push(*stack_, result);
    }
  }

  void give(int stream, std::function<void()> run) const {
    // A list with tensors of both devices: PyTorch makes a kernel on each of the two.
    if (other_) timeline().wait(stream, timeline().mark(*other_));
    timeline().give(stream, {op_.schema().name(), kKernel + bytes_ / kDeviceRate, false, std::move(run)});
    if (other_) timeline().wait(*other_, timeline().mark(stream));
  }

  c10::OperatorHandle op_;
  Stack* stack_;
  Stack given_;
  std::optional<at::Device> device_;
  std::optional<int> other_;  // stream of a second device
  double bytes_ = 0;
  Places new_;
};

void launch(const c10::OperatorHandle& op, Stack* stack) {
  const Timeline::Pause pause;
  Launch(op, stack).run();
}

// Copies.

uint64_t sum_of(const void* begin, size_t bytes) {
  uint64_t sum = 1469598103934665603u, word = 0;
  const auto* at = static_cast<const char*>(begin);
  for (size_t done = 0; done < bytes; done += sizeof(word)) {
    word = 0;
    std::memcpy(&word, at + done, std::min(sizeof(word), bytes - done));
    sum = (sum ^ word) * 1099511628211u;
  }
  return sum;
}

// The host's side of a copy: poisoned, watched.
struct HostSide {
  HostSide(const Tensor& tensor, bool writes) : tensor_(tensor), writes_(writes), where_(place()) {
    begin_ = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
    end_ = begin_ + tensor.nbytes();
  }

  void refuse_conflict(int stream) const {
    if (const OpenCopy* other = timeline().open_at(begin_, end_, writes_, stream))
      fault("a copy begun at " + where_ + (writes_ ? " writes" : " reads") +
            " host memory of the copy begun at " + other->place + ", which is open");
  }

  // What stops the program if the host has changed the source meanwhile.
  std::function<void()> check() const {
    if (writes_ || !checks_sources) return {};
    const auto* from = tensor_.const_data_ptr();
    // Pageable memory lives as long as the copy is open, as with CUDA, which reads it at once.
    const Tensor kept = memory().is_pinned(from) ? Tensor() : tensor_;
    return [from, kept, bytes = tensor_.nbytes(), sum = sum_of(from, tensor_.nbytes()), where = where_] {
      if (sum_of(from, bytes) != sum)
        fault("host memory was changed while the copy begun at " + where + " is open");
    };
  }

  Tensor tensor_;
  bool writes_;
  std::string where_;
  uintptr_t begin_, end_;
};

void copy_to_host(int stream, const Tensor& from, const Tensor& to, bool late) {
  const HostSide host(to, true);
  host.refuse_conflict(stream);
  if (to.is_non_overlapping_and_dense()) std::memset(to.mutable_data_ptr(), 0xff, to.nbytes());
  const bool is_kept =
      memory().is_pinned(to.const_data_ptr());  // by somebody: freed too early, it is reported
  Tensor place =
      is_kept ? at::from_blob(to.mutable_data_ptr(), to.sizes(), to.strides(), to.options()) : to.detach();
  const auto bytes = static_cast<int64_t>(from.nbytes());
  const double seconds = kCopy + static_cast<double>(bytes) / kBusRate;
  const uint64_t position = timeline().give(
      stream, {"copy to host", seconds, true, [place, from = shadow_of(from)] { place.copy_(from); }});
  timeline().open({host.begin_, host.end_, true, stream, position, host.where_, {}});
  timeline().count_copy(bytes, true, late && !is_kept);
}

void copy_to_device(int stream, const Tensor& from, const Tensor& to) {
  // Values of another dtype are converted on the host first, as CUDA does.
  const bool is_direct = from.dtype() == to.dtype() && from.is_non_overlapping_and_dense();
  const Tensor source = is_direct ? from.detach() : from.to(to.scalar_type(), false, true);
  const HostSide host(source, false);
  host.refuse_conflict(stream);
  const auto check = host.check();
  const bool is_kept = memory().is_pinned(source.const_data_ptr());
  void* begin = const_cast<void*>(source.const_data_ptr());
  Tensor values = is_kept ? at::from_blob(begin, source.sizes(), source.strides(), source.options()) : source;
  const auto bytes = static_cast<int64_t>(to.nbytes());
  const double seconds = kCopy + static_cast<double>(bytes) / kBusRate;
  const uint64_t position =
      timeline().give(stream, {"copy to device", seconds, true, [values, to = shadow_of(to), check] {
                                 if (check) check();
                                 to.copy_(values);
                               }});
  timeline().open({host.begin_, host.end_, false, stream, position, host.where_, check});
  timeline().count_copy(bytes, false, false);
}

void copy_on_device(const Tensor& from, const Tensor& to) {
  const int stream = current_stream(from.device().index()), other = current_stream(to.device().index());
  if (stream != other) timeline().wait(stream, timeline().mark(other));
  const double bytes = static_cast<double>(from.nbytes() + to.nbytes());
  const bool crosses = from.device() != to.device();
  const double seconds = crosses ? kCopy + bytes / 2 / kBusRate : kKernel + bytes / kDeviceRate;
  timeline().give(
      stream, {"copy", seconds, crosses, [from = shadow_of(from), to = shadow_of(to)] { to.copy_(from); }});
  if (stream != other) timeline().wait(other, timeline().mark(stream));
}

// As on a GPU each root is rounded once; a CPU's library of vectors may round twice.
std::vector<Tensor> square_roots(at::TensorList values) {
  const Timeline::Pause pause;
  const at::AutoDispatchBelowADInplaceOrView guard;
  std::vector<Tensor> roots;
  for (const Tensor& one : values) {
    roots.push_back(at::empty_like(one));
    const double seconds = kKernel + 2 * static_cast<double>(one.nbytes()) / kDeviceRate;
    timeline().give(current_stream(one.device().index()),
                    {"sqrt", seconds, false, [from = shadow_of(one), to = shadow_of(roots.back())] {
                       to.copy_(from.to(at::kDouble).sqrt());
                     }});
  }
  return roots;
}

Tensor copy_from(const Tensor& self, const Tensor& to, bool non_blocking) {
  const Timeline::Pause pause;
  const at::AutoDispatchBelowADInplaceOrView guard;
  const Tensor from = self.expand_as(to);
  if (to.numel() == 0) return to;
  if (!from.is_cpu() && !to.is_cpu()) {
    copy_on_device(from, to);
    return to;
  }
  const int stream = current_stream((from.is_cpu() ? to : from).device().index());
  from.is_cpu() ? copy_to_device(stream, from, to) : copy_to_host(stream, from, to, non_blocking);
  if (!non_blocking) timeline().finish_stream(stream);
  return to;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& to) {
  to.resize_(self.sizes());
  return copy_from(self, to, false);
}

at::Scalar local_scalar(const Tensor& self) {
  timeline().finish_stream(current_stream(self.device().index()));
  return shadow_of(self).item();
}

// Tensors and views.

Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> /*layout*/,
             std::optional<at::Device> device, std::optional<bool> /*pin*/,
             std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(c10::device_or_default(device));
  return at::detail::empty_generic(size, device_allocator(),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                     std::optional<at::Layout> /*layout*/, std::optional<at::Device> device,
                     std::optional<bool> /*pin*/) {
  const c10::DeviceGuard guard(c10::device_or_default(device));
  return at::detail::empty_strided_generic(size, stride, device_allocator(),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

Tensor as_strided(const Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                  std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

Tensor view(const Tensor& self, at::IntArrayRef size) { return at::native::view(self, size); }

Tensor reshape_alias(const Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
  return at::native::as_strided_tensorimpl(self, size, stride, self.storage_offset());
}

const Tensor& resize(const Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  const Tensor fresh = at::empty(size, self.options(), format);
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(fresh.storage());
  self.unsafeGetTensorImpl()->set_sizes_and_strides(fresh.sizes(), fresh.strides(), 0);
  return self;
}

Tensor& set_storage(Tensor& self, at::Storage storage, int64_t offset, at::IntArrayRef size,
                    at::IntArrayRef stride) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(storage));
  self.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
  return self;
}

Tensor& set_whole_storage(Tensor& self, at::Storage storage) {
  const auto size = static_cast<int64_t>(storage.nbytes() / self.itemsize());
  return set_storage(self, std::move(storage), 0, {size}, {1});
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

void record_stream(Tensor& self, at::Stream stream) {
  memory().used_by(self.storage().mutable_data(), number_of(stream));
}

}  // namespace

std::atomic<bool> checks_sources{true};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("as_strided", as_strided);
  m.impl("view", view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("resize_", resize);
  m.impl("set_.source_Storage", set_whole_storage);
  m.impl("set_.source_Storage_storage_offset", set_storage);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("_foreach_sqrt", square_roots);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_local_scalar_dense", local_scalar);
  m.impl("record_stream", record_stream);
  // One launch each, as on a GPU; the composite ones would be one for each tensor.
  for (const char* name : {"_foreach_add_.List", "_foreach_add_.Scalar", "_foreach_sub_.List",
                           "_foreach_mul.Scalar", "_foreach_mul_.Scalar", "_foreach_zero_",
                           "_foreach_norm.Scalar", "_foreach_copy_", "_foreach_mul_.ScalarList"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&launch>());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&launch>()); }

}  // namespace sim
