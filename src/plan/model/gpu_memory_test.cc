// SPDX-License-Identifier: Apache-2.0
#include "plan/model/gpu_memory.h"

#include <gtest/gtest.h>

namespace tw::plan {
namespace {

ModelProfile net() { return {.name = "net", .params_m = 560}; }

std::string complaint(const ModelProfile& model, const std::string& machine, double gib = 0) {
  const Status fits = check_gpu_memory(model, machine, gib, Gpus::built_in());
  return fits ? "" : fits.error().message;
}

TEST(GpuMemory, has_to_hold_parameters_gradients_and_optimizer) {
  EXPECT_EQ(complaint(net(), "M60"),
            "M60: 8 GiB of GPU memory, and net needs 9.18 (560 million parameters of 16 bytes with gradients "
            "and optimizer, plus 10 %; activations come on top: tw profile measures them)");
  EXPECT_EQ(complaint(net(), "T4"), "");
  EXPECT_NE(complaint(net(), "4xM60"), "") << "each GPU has a copy";
}

TEST(GpuMemory, of_an_offer_goes_before_the_data_sheet) {
  EXPECT_NE(complaint(net(), "T4", 8), "");
  EXPECT_EQ(complaint(net(), "M60", 16), "");
}

TEST(GpuMemory, need_is_what_the_profile_saw_with_a_margin) {
  ModelProfile measured = net();
  measured.file = "net.yaml";
  measured.gpu_memory_mb = 15'000;
  EXPECT_NEAR(gpu_memory_need(measured).gib, 15.37, 0.01);
  EXPECT_EQ(complaint(measured, "T4"), "");
  measured.gpu_memory_mb = 16'000;
  EXPECT_EQ(complaint(measured, "T4"),
            "T4: 16 GiB of GPU memory, and net needs 16.4 (measured, plus 10 %; net.yaml)");
  measured.accumulating["T4"] = {100};
  EXPECT_EQ(complaint(measured, "T4"), "") << "it was measured there";
  EXPECT_EQ(complaint(measured, "4xT4"), "");
}

TEST(GpuMemory, that_nobody_knows_is_not_judged) { EXPECT_EQ(complaint(net(), "mine"), ""); }

}  // namespace
}  // namespace tw::plan
