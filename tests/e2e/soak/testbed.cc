// SPDX-License-Identifier: Apache-2.0
#include "e2e/soak/testbed.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tw::soak {
namespace {

/// On the loopback: below the ports that the kernel gives out by itself, another range for each process.
constexpr unsigned kFirstPort = 20000, kPortsOfAProcess = 100, kRanges = 100;

std::string program() { return std::filesystem::path(TW_PROGRAM).parent_path().string() + "/tw-wan"; }

}  // namespace

Testbed::Testbed(std::string file, std::size_t hosts) : file_(std::move(file)), hosts_(hosts) {
  std::ofstream topology(file_);
  topology << "about: sites for a soak\nsites:\n";
  for (std::size_t host = 0; host < hosts; ++host)
    topology << fmt::format("  - {{name: {}, nic: 300mbit}}\n", site(host));
  topology << "links:\n  - rtt: 20ms\n";
  topology.close();
  is_up_ = tell("up");
}

Testbed::~Testbed() {
  if (is_up_) tell("down");
}

std::string Testbed::listen_address(std::size_t host, std::size_t slot) const {
  if (is_up_) return fmt::format("10.77.{}.1:{}", host + 1, 7100 + slot);
  const unsigned range = static_cast<unsigned>(getpid()) % kRanges;
  return fmt::format("127.0.0.1:{}", kFirstPort + range * kPortsOfAProcess + 10 * slot + host);
}

std::vector<std::string> Testbed::enter(std::size_t host) const {
  if (!is_up_) return {};
  return {program(), file_, "exec", site(host)};
}

std::string Testbed::netns(std::size_t host) const {
  if (!is_up_) return {};
  return fmt::format("tw-wan.{}.{}", std::filesystem::path(file_).stem().string(), site(host));
}

bool Testbed::tell(const std::string& words) const {
  return std::system(fmt::format("{} {} {} > {}.txt 2>&1", program(), file_, words, file_).c_str()) == 0;
}

}  // namespace tw::soak
