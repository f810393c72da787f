// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/extension.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "memory.h"
#include "timeline.h"

namespace sim {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;

thread_local int device_now = 0;
thread_local int streams_now[Memory::kDevices] = {0, 1};

// Streams 0 and 1 are the default ones of the devices.
void make_defaults() {
  static const bool made = [] {
    for (int device = 0; device < Memory::kDevices; ++device) timeline().make_stream(device);
    return true;
  }();
  static_cast<void>(made);
}

c10::Stream stream_of(int number) {
  const int device = timeline().device_of(number);
  const int id = number < Memory::kDevices ? 0 : number;
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kType, static_cast<c10::DeviceIndex>(device)), id);
}

int index_of(c10::Device device) { return device.has_index() ? device.index() : device_now; }

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = kType;

  Guard() = default;

  explicit Guard(c10::DeviceType) {}

  c10::DeviceType type() const override { return kType; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }

  c10::Device getDevice() const override { return {kType, static_cast<c10::DeviceIndex>(device_now)}; }

  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }

  void uncheckedSetDevice(c10::Device device) const noexcept override { device_now = index_of(device); }

  c10::DeviceIndex deviceCount() const noexcept override { return Memory::kDevices; }

  c10::Stream getStream(c10::Device device) const override {
    return stream_of(streams_now[index_of(device)]);
  }

  c10::Stream getDefaultStream(c10::Device device) const override { return stream_of(index_of(device)); }

  c10::Stream getNewStream(c10::Device device, int) const override {
    return stream_of(timeline().make_stream(index_of(device)));
  }

  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getNewStream(device, 0);
  }

  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = getStream(stream.device());
    streams_now[stream.device_index()] = number_of(stream);
    return before;
  }

  bool queryStream(const c10::Stream& stream) const override {
    return timeline().is_done(timeline().mark(number_of(stream)));
  }

  void synchronizeStream(const c10::Stream& stream) const override {
    timeline().finish_stream(number_of(stream));
  }

  void synchronizeDevice(const c10::DeviceIndex device) const override { timeline().finish_device(device); }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (*event == nullptr) *event = new Mark;
    *static_cast<Mark*>(*event) = timeline().mark(number_of(stream));
  }

  void block(void* event, const c10::Stream& stream) const override {
    if (event) timeline().wait(number_of(stream), *static_cast<Mark*>(event));
  }

  bool queryEvent(void* event) const override {
    return event == nullptr || timeline().is_done(*static_cast<Mark*>(event));
  }

  void synchronizeEvent(void* event) const override {
    if (event) timeline().finish(*static_cast<Mark*>(event));
  }

  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Mark*>(event);
  }

  double elapsedTime(void* first, void* second, const c10::DeviceIndex) const override {
    return 1e3 * (static_cast<Mark*>(second)->at_s - static_cast<Mark*>(first)->at_s);
  }

  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    memory().used_by(data.get(), number_of(stream));
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct DeviceMemory final : c10::Allocator {
  static void free(void* address) { memory().take_back(address); }

  c10::DataPtr allocate(size_t bytes) override {
    void* address = memory().give(streams_now[device_now], bytes);
    return {address, address, &free, Guard().getDevice()};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free; }

  void copy_data(void*, const void*, size_t) const override { fault("copy_data of device memory"); }
};

struct PinnedMemory final : at::HostAllocator {
  static void free(void* address) { memory().unpin(address); }

  c10::DataPtr allocate(size_t bytes) override {
    void* address = memory().pin(bytes);
    return {address, address, &free, c10::Device(c10::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free; }

  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }

  bool record_event(void*, void*, c10::Stream) override { return true; }

  void empty_cache() override {}

  at::HostStats get_stats() override { return {}; }

  void reset_accumulated_stats() override {}

  void reset_peak_stats() override {}
};

PinnedMemory* pinned_memory() {
  static auto* one = new PinnedMemory;
  return one;
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }

  bool isAvailable() const override { return true; }

  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }

  c10::DeviceIndex deviceCount() const override { return Memory::kDevices; }

  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(device_now); }

  void setCurrentDevice(c10::DeviceIndex device) const override { device_now = device; }

  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return static_cast<c10::DeviceIndex>(std::exchange(device_now, device));
  }

  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? getCurrentDevice() : exchangeDevice(device);
  }

  bool isPinnedPtr(const void* data) const override { return memory().is_pinned(data); }

  c10::Allocator* getPinnedMemoryAllocator() const override { return pinned_memory(); }

  c10::Device getDeviceFromPtr(void* data) const override {
    return {kType, static_cast<c10::DeviceIndex>(memory().device_of(data))};
  }
};

}  // namespace

int current_device() { return device_now; }

int current_stream(int device) { return streams_now[device < 0 ? device_now : device]; }

int number_of(const c10::Stream& stream) {
  return stream.id() == 0 ? stream.device_index() : static_cast<int>(stream.id());
}

c10::Allocator* device_allocator() {
  static DeviceMemory one;
  return &one;
}

std::string place() {
  if (!Py_IsInitialized()) return "the end of the program";
  const pybind11::gil_scoped_acquire python;
  std::string found = "the backward pass";  // whose threads run no Python
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    const bool is_own = file != nullptr && std::string(file).find("/torch/") == std::string::npos;
    if (is_own) found = std::string(file) + ":" + std::to_string(PyFrame_GetLineNumber(frame));
    Py_DECREF(code);
    PyFrameObject* back = is_own ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  return found;
}

}  // namespace sim

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  using namespace sim;
  make_defaults();
  c10::SetAllocator(c10::DeviceType::PrivateUse1, device_allocator());
  at::setHostAllocator(c10::DeviceType::PrivateUse1, pinned_memory());
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  m.def("begin", [](uint64_t seed, int order, bool real_host, bool checks) {
    checks_sources = checks;
    timeline().begin(seed, static_cast<Order>(order), real_host);
  });
  m.def("host_seconds", [] { return timeline().host_seconds(); });
  m.def("spend", [](double seconds) {
    timeline().give(current_stream(current_device()), {"spend", seconds, false, {}});
  });
  m.def("counts", [] {
    const Counts counts = timeline().counts();
    return std::map<std::string, int64_t>{{"launches", counts.launches},
                                          {"copies", counts.copies},
                                          {"bytes_to_host", counts.bytes_to_host},
                                          {"bytes_to_device", counts.bytes_to_device},
                                          {"late_to_pageable", counts.late_to_pageable},
                                          {"waits", counts.waits},
                                          {"device_waits", counts.device_waits},
                                          {"device_bytes", static_cast<int64_t>(memory().device_bytes())},
                                          {"pinned_bytes", static_cast<int64_t>(memory().pinned_bytes())}};
  });
  m.def("current_device", [] { return current_device(); });
  m.def("set_device", [](int device) { device_now = device; });
}
