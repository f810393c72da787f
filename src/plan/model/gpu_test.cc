// SPDX-License-Identifier: Apache-2.0
#include "plan/model/gpu.h"

#include <gtest/gtest.h>

namespace tw::plan {
namespace {

TEST(Gpus, have_the_names_of_the_catalog_whatever_their_drivers_call_them) {
  const Gpus& gpus = Gpus::built_in();
  for (const auto& [driver, name] :
       std::initializer_list<std::pair<const char*, const char*>>{{"Tesla T4", "T4"},
                                                                  {"NVIDIA A10G", "A10G"},
                                                                  {"NVIDIA A10", "A10"},
                                                                  {"NVIDIA A100-SXM4-40GB", "A100"},
                                                                  {"NVIDIA A100-SXM4-80GB", "A100-80GB"},
                                                                  {"NVIDIA A100 80GB PCIe", "A100-80GB"},
                                                                  {"NVIDIA H100 80GB HBM3", "H100"},
                                                                  {"Quadro RTX 8000", "RTX8000"},
                                                                  {"NVIDIA RTX A6000", "A6000"},
                                                                  {"Tesla V100-SXM2-16GB", "V100"}})
    EXPECT_EQ(gpus.named(driver), name) << driver;
}

TEST(Gpus, that_nobody_knows_are_named_by_their_drivers) {
  const Gpus& gpus = Gpus::built_in();
  EXPECT_EQ(gpus.named("NVIDIA RTX A1000"), "RTX-A1000") << "no A100";
  EXPECT_EQ(gpus.named("NVIDIA RTX 6000 Ada Generation"), "RTX-6000-Ada-Generation") << "no RTX6000";
  EXPECT_EQ(gpus.named("AMD Instinct MI300X"), "MI300X");
}

}  // namespace
}  // namespace tw::plan
