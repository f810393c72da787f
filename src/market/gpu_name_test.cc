// SPDX-License-Identifier: Apache-2.0
#include "market/gpu_name.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

namespace tw::market {
namespace {

using Pairs = std::initializer_list<std::pair<const char*, const char*>>;

TEST(GpuName, is_that_of_the_catalog_whatever_the_driver_calls_it) {
  for (const auto& [driver, name] : Pairs{{"Tesla T4", "T4"},
                                          {"NVIDIA A10G", "A10G"},
                                          {"NVIDIA A10", "A10"},
                                          {"NVIDIA A100-SXM4-40GB", "A100"},
                                          {"NVIDIA A100-SXM4-80GB", "A100-80GB"},
                                          {"NVIDIA A100 80GB PCIe", "A100-80GB"},
                                          {"NVIDIA H100 80GB HBM3", "H100"},
                                          {"Quadro RTX 8000", "RTX8000"},
                                          {"NVIDIA RTX A6000", "A6000"},
                                          {"NVIDIA GeForce RTX 4090", "RTX4090"},
                                          {"Tesla V100-SXM2-16GB", "V100"}}) {
    EXPECT_EQ(name_of_driver(driver), name);
    EXPECT_EQ(gpu_name(driver), name) << "as a user copies it";
  }
}

TEST(GpuName, of_an_unknown_gpu_is_that_of_its_driver) {
  for (const auto& [driver, name] : Pairs{{"NVIDIA RTX A1000", "RTX-A1000"},
                                          {"NVIDIA RTX 6000 Ada Generation", "RTX6000-Ada"},
                                          {"NVIDIA GeForce RTX 4090 Laptop GPU", "RTX4090-Laptop-GPU"},
                                          {"NVIDIA GeForce RTX 3090", "RTX3090"},
                                          {"Tesla V100-SXM2-32GB", "V100-32GB"},
                                          {"NVIDIA A100-SXM4-80GB MIG 1g.10gb", "A100-80GB-MIG-1g.10gb"},
                                          {"AMD Instinct MI300X", "MI300X"},
                                          {"AMD Instinct MI300X Card", "MI300X"},
                                          {"NVIDIA", "NVIDIA"}})
    EXPECT_EQ(name_of_driver(driver), name);
}

TEST(GpuName, ignores_case_and_counts_gpus) {
  for (const auto& [written, name] : Pairs{{"t4", "T4"},
                                           {"4xt4", "4xT4"},
                                           {"8Xa100-80gb", "8xA100-80GB"},
                                           {"2xTesla T4", "2xT4"},
                                           {"A100 80GB", "A100-80GB"},
                                           {"A100-SXM4-80GB", "A100-80GB"},
                                           {"nvidia-tesla-t4", "T4"},
                                           {"rtx 8000", "RTX8000"},
                                           {"dgx2-8xv100", "DGX2-8xV100"}})
    EXPECT_EQ(gpu_name(written), name);
}

TEST(GpuName, that_catalogs_or_users_gave_stays) {
  for (const char* name :
       {"", "V100-32GB", "H100-SXM", "H100-MEGA", "A100-80GB-SXM", "T4g", "RTX6000-Ada", "my box", "MyBox",
        "4x", "amd-box", "nvidia-box", "my card", "card 1", "NVIDIA", "my NVIDIA box", "box-rtx 1"})
    EXPECT_EQ(gpu_name(name), name);
}

}  // namespace
}  // namespace tw::market
