// SPDX-License-Identifier: Apache-2.0
#include "host/system/gpu_meter.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace tw::host {
namespace {

constexpr auto kAskEvery = std::chrono::seconds(1);

// As the header of NVML has them (nvml.h), which need not be installed.
using Device = void*;

struct Utilization {
  unsigned gpu = 0, memory = 0;  // per cent of the driver's last period
};

struct Memory {
  unsigned long long total = 0, free = 0, used = 0;  // NOLINT(google-runtime-int): of the C interface
};

constexpr int kSuccess = 0;

/// The functions of the library, which stays loaded.
struct Driver {
  int (*init)() = nullptr;
  const char* (*text)(int) = nullptr;
  int (*find)(const char* uuid, Device* device) = nullptr;
  int (*utilization)(Device device, Utilization* found) = nullptr;
  int (*memory)(Device device, Memory* found) = nullptr;

  /// Why it cannot be used; empty: it can.
  std::string load(const std::string& name) {
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return fmt::format("{} cannot be loaded", name);
    const auto look_up = [library](auto& function, const char* symbol) {
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as dlsym says
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
      return function != nullptr;
    };
    const bool all = look_up(init, "nvmlInit_v2") && look_up(text, "nvmlErrorString") &&
                     look_up(find, "nvmlDeviceGetHandleByUUID") &&
                     look_up(utilization, "nvmlDeviceGetUtilizationRates") &&
                     look_up(memory, "nvmlDeviceGetMemoryInfo");
    if (!all) return fmt::format("{} lacks a function of NVML", name);
    const int began = init();
    return began == kSuccess ? "" : fmt::format("{}: {}", name, text(began));
  }
};

}  // namespace

/// What the thread has found. Any thread.
class GpuMeter::Found {
 public:
  std::optional<GpuUse> take() {
    const std::lock_guard lock(mutex_);
    std::optional<GpuUse> use = std::exchange(last_, std::nullopt);
    if (use && measured_ > 0) use->busy = busy_ / measured_;
    busy_ = measured_ = 0;
    return use;
  }

  std::string take_failure() {
    const std::lock_guard lock(mutex_);
    return std::exchange(failure_, {});
  }

  void end() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    ends_.notify_all();
  }

  /// The thread, until end() or a failure.
  void run(const std::string& uuid, const std::string& library) {
    Driver driver;
    Device device = nullptr;
    if (std::string why = driver.load(library); !why.empty()) return fail(std::move(why));
    int found = driver.find(("GPU-" + uuid).c_str(), &device);
    if (found != kSuccess) found = driver.find(("MIG-" + uuid).c_str(), &device);
    if (found != kSuccess) return fail(fmt::format("{}: {}", uuid, driver.text(found)));
    do {
      Utilization utilization;
      Memory memory;
      const bool counts = driver.utilization(device, &utilization) == kSuccess;
      if (driver.memory(device, &memory) == kSuccess)
        add({.busy = counts ? std::optional(utilization.gpu / 100.0) : std::nullopt,
             .memory = memory.used,
             .memory_total = memory.total});
    } while (!ends_within_a_second());
  }

 private:
  bool ends_within_a_second() {
    std::unique_lock lock(mutex_);
    return ends_.wait_for(lock, kAskEvery, [this] { return over_; });
  }

  void add(const GpuUse& use) {
    const std::lock_guard lock(mutex_);
    last_ = use;
    if (!use.busy) return;
    busy_ += *use.busy;
    ++measured_;
  }

  void fail(std::string why) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(why);
  }

  std::mutex mutex_;
  std::condition_variable ends_;
  bool over_ = false;           // guarded by mutex_, as all below
  std::optional<GpuUse> last_;  // since the last take()
  double busy_ = 0;             // sum of so many
  int measured_ = 0;
  std::string failure_;
};

GpuMeter::GpuMeter(const std::string& uuid, const std::string& library) : found_(std::make_shared<Found>()) {
  std::thread([found = found_, uuid, library] { found->run(uuid, library); }).detach();
}

GpuMeter::~GpuMeter() { found_->end(); }

std::optional<GpuUse> GpuMeter::take() { return found_->take(); }

std::string GpuMeter::take_failure() { return found_->take_failure(); }

}  // namespace tw::host
