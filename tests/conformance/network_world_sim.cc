// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <deque>

#include "conformance/network_world.h"
#include "sim/virtual/network.h"

namespace tw::conformance {
namespace {

class SimulatedWorld final : public NetworkWorld {
 public:
  Process start(PeerId) override {
    sim::Port& door = network_.attach(processes_.emplace_back(scheduler_), {});
    return {&door, "", [this, number = door.number()] { network_.crash(number, sim::Death::clean); }};
  }

  bool run_until(const std::function<bool()>& done) override {
    const Instant end = scheduler_.now() + std::chrono::minutes(1);
    while (!done()) {
      if (scheduler_.now() >= end || !scheduler_.step()) return done();
    }
    return true;
  }

 private:
  sim::Scheduler scheduler_;
  sim::VirtualNetwork network_{scheduler_, 7};
  std::deque<sim::Process> processes_;
};

}  // namespace

std::unique_ptr<NetworkWorld> simulated_world() { return std::make_unique<SimulatedWorld>(); }

}  // namespace tw::conformance
