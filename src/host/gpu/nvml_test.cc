// SPDX-License-Identifier: Apache-2.0
#include "host/gpu/nvml.h"

#include <gtest/gtest.h>

namespace tw::host {
namespace {

TEST(Nvml, lists_the_cards_of_the_machine) {
  const auto gpus = list_gpus(TW_NVML);
  ASSERT_TRUE(gpus);
  ASSERT_EQ(gpus.value().size(), 2U);
  EXPECT_EQ(gpus.value()[0].name, "Whole");
  EXPECT_EQ(gpus.value()[0].use.memory_total, 80000U);
  EXPECT_EQ(gpus.value()[1].name, "Slice");
  EXPECT_EQ(list_gpus("libtw-none.so.1").error().message, "libtw-none.so.1 cannot be loaded");
}

}  // namespace
}  // namespace tw::host
