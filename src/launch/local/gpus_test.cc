// SPDX-License-Identifier: Apache-2.0
#include "launch/local/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tw::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(GpusOfThisMachine, are_the_lines_of_nvidia_smi) {
  EXPECT_THAT(gpus_of_nvidia("NVIDIA A100-SXM4-40GB, 1000\nTesla T4, 0\n"),
              ElementsAre(Gpu{"NVIDIA A100-SXM4-40GB", 1048.576}, Gpu{"Tesla T4", 0}));
  EXPECT_THAT(gpus_of_nvidia("No devices were found\n"), IsEmpty());
  EXPECT_THAT(gpus_of_nvidia("Tesla T4, [N/A]\n"), IsEmpty());
}

TEST(GpusOfThisMachine, are_the_rows_of_rocm_smi_whatever_its_version) {
  EXPECT_THAT(gpus_of_rocm("device,VRAM Total Memory (B),VRAM Total Used Memory (B),Card series,Card model\n"
                           "card0,68702699520,11000000,AMD INSTINCT MI250 (MCM) OAM AC MBA,0x0b0c\n\n"),
              ElementsAre(Gpu{"AMD INSTINCT MI250 (MCM) OAM AC MBA", 11}));
  EXPECT_THAT(
      gpus_of_rocm("WARNING: low power\n\ndevice,Card Series,VRAM Total Used Memory (B)\ncard0,MI300X,5e6\n"),
      ElementsAre(Gpu{"MI300X", 5}));
  EXPECT_THAT(gpus_of_rocm(""), IsEmpty());
}

}  // namespace
}  // namespace tw::launch
