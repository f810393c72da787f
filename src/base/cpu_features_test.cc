// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_features.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace tw {
namespace {

/// What the kernel lists of the first processor: "flags" on x86-64, "Features" on Arm.
std::set<std::string> listed_by_the_kernel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    std::set<std::string> names;
    for (std::string name; words >> name;) names.insert(name);
    return names;
  }
  return {};
}

TEST(CpuFeatures, are_those_that_the_kernel_lists) {
  const std::set<std::string> listed = listed_by_the_kernel();
  ASSERT_FALSE(listed.empty());
  const auto has = [&](auto... names) { return (listed.contains(names) && ...); };
  const CpuFeatures features = cpu_features();
  EXPECT_EQ(features.aes, has("aes"));
  EXPECT_EQ(features.avx2, has("avx2", "f16c"));
  EXPECT_EQ(features.avx512, has("avx2", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl"));
}

}  // namespace
}  // namespace tw
