// SPDX-License-Identifier: Apache-2.0
#include "host/system/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>

namespace tw::host {
namespace {

/// What stands behind "model name" in the first lines of /proc/cpuinfo, without the signs of its owner.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  constexpr int kMostLines = 40;
  std::string line;
  for (int i = 0; i < kMostLines && std::getline(file, line); ++i) {
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    std::string name = line.substr(colon + 2);
    for (const char* sign : {"(R)", "(TM)", "(tm)", " CPU", " Processor"})
      if (const std::size_t at = name.find(sign); at != std::string::npos)
        name.erase(at, std::string_view(sign).size());
    return name;
  }
  return {};
}

}  // namespace

std::string hardware_words() {
  constexpr std::size_t kMostBytes = 64;
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const std::string name = processor_name().substr(0, kMostBytes);
  const std::string words = fmt::format("{} {}", cores, cores == 1 ? "core" : "cores");
  return name.empty() ? words : name + ", " + words;
}

}  // namespace tw::host
