// SPDX-License-Identifier: Apache-2.0
#include "launch/local/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace tw::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Ids = std::vector<std::string>;

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

/// A machine that has what a test writes into it.
struct GpuMachine {
  std::map<std::string, std::string> variables{}, tools{}, files{};
  std::map<std::string, std::vector<std::string>> folders{};

  Result<VisibleGpus> gpus() const {
    const auto text = [](const std::map<std::string, std::string>& all, const std::string& name) {
      const auto found = all.find(name);
      return found != all.end() ? found->second : std::string();
    };
    return find_visible_gpus(
        {.variable = [=, this](const std::string& name) { return text(variables, name); },
         .ask = [=, this](const std::vector<std::string>& words) { return text(tools, words.front()); },
         .list =
             [this](const std::string& folder) {
               const auto found = folders.find(folder);
               return found != folders.end() ? found->second : std::vector<std::string>();
             },
         .read = [=, this](const std::string& path) { return text(files, path); }});
  }
};

void expect_gpus(const GpuMachine& machine, const std::string& variable, const Ids& ids) {
  const auto found = machine.gpus();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found.value(), (VisibleGpus{variable, ids}));
}

const std::string kTwoA100 =
    "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-11111111-aaaa)\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-2222)\n";

TEST(VisibleGpus, are_those_that_the_tool_of_the_driver_lists) {
  expect_gpus({.tools = {{"nvidia-smi", kTwoA100}}}, "CUDA_VISIBLE_DEVICES", {"0", "1"});
  expect_gpus({.tools = {{"rocm-smi",
                          "=== ROCm ===\nGPU[0]\t\t: Device Name: MI250\nGPU[0]\t\t: Device ID: 0x740c\n"
                          "GPU[1]\t\t: Device Name: MI250\nGPU[1]\t\t: Device ID: 0x740c\n"}}},
              "HIP_VISIBLE_DEVICES", {"0", "1"});
  expect_gpus(
      {.tools = {{"sycl-ls",
                  "[opencl:cpu][opencl:0] Intel(R) OpenCL, Xeon\n[level_zero:gpu][level_zero:0] Intel(R) "
                  "Level-Zero, Max 1550\n[ext_oneapi_level_zero:gpu:1] Intel(R) Level-Zero, Max 1550\n"}}},
      "ZE_AFFINITY_MASK", {"0", "1"});
}

TEST(VisibleGpus, in_slices_are_named_by_the_uuid_of_each) {
  expect_gpus({.tools = {{"nvidia-smi", kTwoA100 + "  MIG 3g.20gb     Device  0: (UUID: MIG-aa-bb)\n"
                                                   "  MIG 3g.20gb     Device  1: (UUID: MIG-cc-dd)\n"}}},
              "CUDA_VISIBLE_DEVICES", {"0", "MIG-aa-bb", "MIG-cc-dd"});
}

TEST(VisibleGpus, are_device_nodes_where_no_tool_is) {
  expect_gpus({.folders = {{"/dev", {"null", "nvidiactl", "nvidia10", "nvidia2", "nvidia-uvm"}}}},
              "CUDA_VISIBLE_DEVICES", {"2", "10"});
  const std::string vendor = "/device/vendor";
  GpuMachine machine{.files = {{"/sys/class/drm/renderD128" + vendor, "0x1002\n"},
                               {"/sys/class/drm/renderD129" + vendor, "0x8086\n"},
                               {"/sys/class/drm/renderD130" + vendor, "0x1002\n"}},
                     .folders = {{"/dev/dri", {"card0", "renderD128", "renderD129", "renderD130"}}}};
  expect_gpus(machine, "HIP_VISIBLE_DEVICES", {"0", "1"});
  machine.folders["/dev/dri"] = {"renderD129"};
  expect_gpus(machine, "ZE_AFFINITY_MASK", {"0"});
}

TEST(VisibleGpus, are_those_of_a_list_that_the_user_has_set) {
  expect_gpus({.variables = {{"CUDA_VISIBLE_DEVICES", "3, 1,MIG-x"}}, .tools = {{"nvidia-smi", kTwoA100}}},
              "CUDA_VISIBLE_DEVICES", {"3", "1", "MIG-x"});
  expect_gpus({.variables = {{"ZE_AFFINITY_MASK", "0.1,1"}}, .tools = {{"nvidia-smi", kTwoA100}}},
              "ZE_AFFINITY_MASK", {"0.1", "1"});
  const auto none = GpuMachine{.variables = {{"CUDA_VISIBLE_DEVICES", "-1"}}}.gpus();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "--peers gpus: CUDA_VISIBLE_DEVICES=-1 names no device");
}

TEST(VisibleGpus, that_are_not_there_are_one_error_that_says_what_was_looked_for) {
  const auto none = GpuMachine{.folders = {{"/dev", {"null", "nvidiactl"}}, {"/dev/dri", {"card0"}}}}.gpus();
  ASSERT_FALSE(none);
  for (const char* word : {"nvidia-smi", "rocm-smi", "sycl-ls", "/dev/nvidia0", "/dev/dri", "--peers 2"})
    EXPECT_THAT(none.error().message, HasSubstr(word));
}

}  // namespace
}  // namespace tw::launch
