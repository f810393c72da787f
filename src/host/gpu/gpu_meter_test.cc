// SPDX-License-Identifier: Apache-2.0
#include "host/gpu/gpu_meter.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tw::host {
namespace {

/// The first use, or why there is none.
struct Measured {
  std::optional<GpuUse> use;
  std::string failure;

  explicit Measured(const char* uuid, const char* library = TW_NVML) {
    GpuMeter meter(uuid, library);
    while (!use && failure.empty()) {
      use = meter.take();
      failure = meter.take_failure();
    }
    EXPECT_EQ(meter.take_failure(), "") << "said once";
  }
};

TEST(GpuMeter, has_the_use_and_the_memory_of_a_card) {
  const Measured measured("whole");
  ASSERT_TRUE(measured.use);
  EXPECT_EQ(measured.use->busy, 0.5);
  EXPECT_EQ(measured.use->memory, 20000U);
  EXPECT_EQ(measured.use->memory_total, 80000U);
}

TEST(GpuMeter, has_the_memory_of_a_slice_whose_use_is_not_counted) {
  const Measured measured("slice");
  ASSERT_TRUE(measured.use);
  EXPECT_FALSE(measured.use->busy);
  EXPECT_EQ(measured.use->memory, 20000U);
}

TEST(GpuMeter, names_what_is_missing) {
  EXPECT_EQ(Measured("whole", "libtw-none.so.1").failure, "libtw-none.so.1 cannot be loaded");
  EXPECT_EQ(Measured("other").failure, "other: Not Found");
  setenv("TW_NVML_FAILS", "1", 1);
  EXPECT_EQ(Measured("whole").failure, std::string(TW_NVML) + ": Driver Not Loaded");
  unsetenv("TW_NVML_FAILS");
}

}  // namespace
}  // namespace tw::host
