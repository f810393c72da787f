// SPDX-License-Identifier: Apache-2.0
#include "launch/local/memory_kills.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "host/system/temporary_folder.h"

namespace tw::launch {
namespace {

struct Kernel {
  host::TemporaryFolder root;

  void writes(const std::string& file, const std::string& text) const {
    const std::string path = root.path() + file;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }
};

TEST(MemoryKills, are_those_of_the_own_group_since_the_beginning) {
  const Kernel kernel;
  kernel.writes("/proc/self/cgroup", "0::/job\n");
  kernel.writes("/proc/vmstat", "oom_kill 90\n");
  const std::string events = "/sys/fs/cgroup/job/memory.events";
  kernel.writes(events, "oom 7\noom_kill 3\noom_group_kill 0\n");
  MemoryKills kills(kernel.root.path());
  EXPECT_FALSE(kills.take());
  kernel.writes("/proc/vmstat", "oom_kill 99\n");
  EXPECT_FALSE(kills.take()) << "of another group";
  kernel.writes(events, "oom 9\noom_kill 5\n");
  EXPECT_TRUE(kills.take());
  EXPECT_TRUE(kills.take());
  EXPECT_FALSE(kills.take()) << "two were killed";
}

TEST(MemoryKills, are_read_where_the_kernel_has_them) {
  const auto sees = [](const char* groups, const char* file) {
    const Kernel kernel;
    if (*groups != '\0') kernel.writes("/proc/self/cgroup", groups);
    kernel.writes(file, "under_oom 0\noom_kill 0\n");
    MemoryKills kills(kernel.root.path());
    kernel.writes(file, "under_oom 0\noom_kill 1\n");
    return kills.take();
  };
  const char* const first = "5:cpu:/a\n4:memory:/a/b\n0::/\n";
  EXPECT_TRUE(sees(first, "/sys/fs/cgroup/memory/a/b/memory.oom_control"));
  EXPECT_TRUE(sees(first, "/sys/fs/cgroup/memory/memory.oom_control")) << "in a container";
  EXPECT_TRUE(sees("4:memory:/a:b\n", "/sys/fs/cgroup/memory/a:b/memory.oom_control")) << "of containerd";
  EXPECT_TRUE(sees("0::/\n", "/sys/fs/cgroup/memory.events"));
  EXPECT_TRUE(sees("0::/\n", "/proc/vmstat"));
  EXPECT_TRUE(sees("", "/proc/vmstat"));
  EXPECT_FALSE(sees("", "/elsewhere"));
}

}  // namespace
}  // namespace tw::launch
