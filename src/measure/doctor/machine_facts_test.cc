// SPDX-License-Identifier: Apache-2.0
#include "measure/doctor/machine_facts.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

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
  EXPECT_FALSE(std::filesystem::exists(::testing::TempDir() + "machine_facts"));
  EXPECT_FALSE(measure_disk("/proc/nowhere", 1).ok());
}

TEST(MachineFacts, of_a_disk_leave_a_folder_that_was_there) {
  const std::string above = ::testing::TempDir() + "machine_facts_kept", folder = above + "/kept/";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(measure_disk(folder, 1).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  {
    const FoldersOnTrial made(folder + "new/newer");
    std::filesystem::create_directories(folder + "new/newer");
    std::ofstream(folder + "new/file") << "of somebody else";
  }
  EXPECT_FALSE(std::filesystem::exists(folder + "new/newer"));
  EXPECT_TRUE(std::filesystem::exists(folder + "new/file"));
  std::filesystem::remove_all(above);
}

TEST(MachineFacts, know_what_a_process_may_map) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit less{.rlim_cur = rlim_t{1} << 50, .rlim_max = before.rlim_max};
  if (less.rlim_cur >= before.rlim_max) GTEST_SKIP() << "a limit holds already";
  ASSERT_EQ(setrlimit(RLIMIT_AS, &less), 0);
  EXPECT_EQ(measure_memory().mapped_limit, std::uint64_t{1} << 50);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
}

}  // namespace
}  // namespace tw::measure
