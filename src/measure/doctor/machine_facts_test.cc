// SPDX-License-Identifier: Apache-2.0
#include "measure/doctor/machine_facts.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace tw::measure {
namespace {

TEST(MachineFacts, are_measured_here) {
  const CpuFacts cpu = measure_cpu();
  EXPECT_GE(cpu.threads, 1);
  EXPECT_GT(cpu.got, 0);
  EXPECT_LT(cpu.got, cpu.threads * 1.5);
  const MemoryFacts memory = measure_memory();
  EXPECT_GT(memory.total, std::uint64_t{1} << 20);
  EXPECT_LE(memory.available, memory.total);
  if (memory.limit) {
    EXPECT_LT(*memory.limit, memory.total);
  }
  const FileLimit files = open_file_limit();
  EXPECT_GT(files.soft, 2U);
  EXPECT_LE(files.soft, files.hard);
  EXPECT_GE(ask_clock().error_s, 0);
}

TEST(MachineFacts, of_a_disk_leave_nothing_behind) {
  const std::string folder = ::testing::TempDir() + "machine_facts/new";
  const auto disk = measure_disk(folder, 3 << 20);
  ASSERT_TRUE(disk.ok());
  EXPECT_EQ(disk.value().bytes, std::uint64_t{3} << 20);
  EXPECT_GT(disk.value().bytes_per_s, 0);
  EXPECT_GT(disk.value().free, 0U);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_FALSE(measure_disk("/proc/nowhere", 1).ok());
  std::filesystem::remove_all(::testing::TempDir() + "machine_facts");
}

}  // namespace
}  // namespace tw::measure
