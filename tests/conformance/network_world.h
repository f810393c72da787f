// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/ids.h"
#include "world/network.h"

namespace tw::conformance {

/// A place in which processes reach each other by the Network door, for the tests of what each such door must
/// do. One thread: run_until makes all calls.
class NetworkWorld {
 public:
  virtual ~NetworkWorld() = default;

  /// The door of a new process, not open yet. It stays until the world ends, or end() is called.
  struct Process {
    world::Network* network = nullptr;
    std::string listen_address;  ///< for Network::open
    std::function<void()> end;   ///< the process ends without a word; its door is gone
  };

  /// self: the peer that the process says it is.
  virtual Process start(PeerId self) = 0;

  /// Runs until done() holds, as asked after each step; false when it does not within the patience of a test.
  virtual bool run_until(const std::function<bool()>& done) = 0;
};

std::unique_ptr<NetworkWorld> simulated_world();
std::unique_ptr<NetworkWorld> tcp_world();
std::unique_ptr<NetworkWorld> tls_world();

}  // namespace tw::conformance
