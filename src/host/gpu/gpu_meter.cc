// SPDX-License-Identifier: Apache-2.0
#include "host/gpu/gpu_meter.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace tw::host {
namespace {

constexpr auto kAskEvery = std::chrono::seconds(1);

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
    const auto nvml = Nvml::load(library);
    if (!nvml) return fail(nvml.error().message);
    const auto device = nvml.value().find(uuid);
    if (!device) return fail(device.error().message);
    do {
      if (const auto use = nvml.value().use_of(device.value())) add(*use);
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
