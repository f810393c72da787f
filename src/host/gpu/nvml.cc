// SPDX-License-Identifier: Apache-2.0
#include "host/gpu/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <future>
#include <thread>
#include <type_traits>
#include <utility>

namespace tw::host {
namespace {

constexpr auto kLongestCall = std::chrono::seconds(5);
constexpr int kSuccess = 0;

// As the header of NVML has them (nvml.h), which need not be installed.
struct Utilization {
  unsigned gpu = 0, memory = 0;  // per cent of the driver's last period
};

struct Memory {
  unsigned long long total = 0, free = 0, used = 0;  // NOLINT(google-runtime-int): of the C interface
};

}  // namespace

struct Nvml::Functions {
  int (*init)() = nullptr;
  const char* (*text)(int) = nullptr;
  int (*count)(unsigned* devices) = nullptr;
  int (*at)(unsigned index, Device* device) = nullptr;
  int (*find)(const char* uuid, Device* device) = nullptr;
  int (*name)(Device device, char* text, unsigned length) = nullptr;
  int (*utilization)(Device device, Utilization* found) = nullptr;
  int (*memory)(Device device, Memory* found) = nullptr;

  bool look_up(void* library) {
    const auto has = [library](auto& function, const char* symbol) {
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as dlsym says
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
      return function != nullptr;
    };
    return has(init, "nvmlInit_v2") && has(text, "nvmlErrorString") && has(count, "nvmlDeviceGetCount_v2") &&
           has(at, "nvmlDeviceGetHandleByIndex_v2") && has(find, "nvmlDeviceGetHandleByUUID") &&
           has(name, "nvmlDeviceGetName") && has(utilization, "nvmlDeviceGetUtilizationRates") &&
           has(memory, "nvmlDeviceGetMemoryInfo");
  }
};

Result<Nvml> Nvml::load(const std::string& library) {
  void* const loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return Error{fmt::format("{} cannot be loaded", library)};
  auto functions = std::make_unique<Functions>();
  if (!functions->look_up(loaded)) return Error{fmt::format("{} lacks a function of NVML", library)};
  const int began = functions->init();
  if (began != kSuccess) return Error{fmt::format("{}: {}", library, functions->text(began))};
  return Nvml(std::move(functions));
}

Result<Nvml::Device> Nvml::find(const std::string& uuid) const {
  Device device = nullptr;
  int found = call_->find(("GPU-" + uuid).c_str(), &device);
  if (found != kSuccess) found = call_->find(("MIG-" + uuid).c_str(), &device);
  if (found != kSuccess) return Error{fmt::format("{}: {}", uuid, call_->text(found))};
  return device;
}

Result<std::vector<Nvml::Device>> Nvml::devices() const {
  unsigned count = 0;
  if (const int counted = call_->count(&count); counted != kSuccess) return Error{call_->text(counted)};
  std::vector<Device> devices;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    if (call_->at(i, &device) == kSuccess) devices.push_back(device);
  }
  return devices;
}

std::string Nvml::name_of(Device device) const {
  std::array<char, 96> text{};  // NVML_DEVICE_NAME_V2_BUFFER_SIZE
  const int found = call_->name(device, text.data(), text.size());
  return found == kSuccess ? text.data() : "GPU";
}

std::optional<GpuUse> Nvml::use_of(Device device) const {
  Utilization utilization;
  Memory memory;
  const bool counts = call_->utilization(device, &utilization) == kSuccess;
  if (call_->memory(device, &memory) != kSuccess) return std::nullopt;
  return GpuUse{.busy = counts ? std::optional(utilization.gpu / 100.0) : std::nullopt,
                .memory = memory.used,
                .memory_total = memory.total};
}

namespace {

Result<std::vector<Gpu>> ask_all(const std::string& library) {
  TW_TRY(const auto nvml, Nvml::load(library));
  TW_TRY(const auto devices, nvml.devices());
  std::vector<Gpu> gpus;
  for (Nvml::Device device : devices)
    gpus.push_back({nvml.name_of(device), nvml.use_of(device).value_or(GpuUse{})});
  return gpus;
}

}  // namespace

Result<std::vector<Gpu>> list_gpus(const std::string& library) {
  std::packaged_task<Result<std::vector<Gpu>>()> task([library] { return ask_all(library); });
  auto answer = task.get_future();
  std::thread(std::move(task)).detach();
  if (answer.wait_for(kLongestCall) == std::future_status::ready) return answer.get();
  return Error{fmt::format("the driver does not answer ({}, {} s)", library, kLongestCall.count())};
}

}  // namespace tw::host
