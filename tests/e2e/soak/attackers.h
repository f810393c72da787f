// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/prng.h"

namespace tw::soak {

/// Connections of nobody to one listening address, kept up from a host of the testbed until the object goes:
/// a third says nothing, a third a byte now and then, a third sends garbage and hangs up. A thread of its
/// own, since a network namespace is one thread's.
class Attackers {
 public:
  struct Options {
    std::string target;  ///< "10.77.1.1:7100"
    std::string netns;   ///< they come from there; empty: from this process's own
    std::size_t connections = 60;
    std::uint64_t seed = 1;
  };

  explicit Attackers(Options options);
  ~Attackers();
  Attackers(const Attackers&) = delete;
  Attackers& operator=(const Attackers&) = delete;

  /// Connections made until now.
  std::uint64_t made() const { return made_; }

 private:
  enum class Manner { idle, slow, garbage };

  struct Attacker {
    int socket = -1;
    Manner manner{};
  };

  void besiege();
  void act(Attacker& attacker);
  void dial(Attacker& attacker);

  Options options_;
  sockaddr_in target_{};
  Prng prng_;
  std::vector<Attacker> attackers_;
  std::atomic<std::uint64_t> made_ = 0;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

}  // namespace tw::soak
