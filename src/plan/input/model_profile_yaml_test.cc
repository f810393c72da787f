// SPDX-License-Identifier: Apache-2.0
#include "plan/input/model_profile_yaml.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tw::plan {
namespace {

TEST(ModelProfileFile, is_read_as_it_was_written) {
  ModelProfile model{.name = "train", .params_m = 1.5, .tensors = 8, .microbatch = 16};
  model.data_mb_per_sample = 0.1;
  model.state_mb = 18;
  model.memory_mb = 900;
  model.gpu_memory_mb = 2000;
  model.cpu_cores = 4;
  model.file = "train.yaml";
  model.command = R"(python3 train.py --say 'a "word" \ two')";
  model.accumulating = {{"T4", {500, 1.25, "train.yaml"}}, {"cpu", {20, 1.01, "train.yaml"}}};
  model.hardware = {{"T4", "AMD EPYC 7B13, 8 cores; Tesla T4"}, {"cpu", "AMD EPYC 7B13, 8 cores"}};
  const auto read = read_profile("train.yaml", write_profile(model));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read.value(), model) << write_profile(model);
}

TEST(ModelProfileFile, takes_any_name_of_a_gpu) {
  const auto read = read_profile("p.yaml",
                                 "model: m\nparams_m: 1\ntensors: 2\n"
                                 "accumulating: {NVIDIA A100-SXM4-80GB: 9, 4xt4: 5}\n"
                                 "spread: {a100-80gb: 1.5, 4xTesla T4: 2}\nhardware: {Tesla T4: a card}\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read.value().accumulating, (std::map<std::string, MeasuredSpeed>{
                                           {"A100-80GB", {9, 1.5, "p.yaml"}}, {"4xT4", {5, 2, "p.yaml"}}}));
  EXPECT_EQ(read.value().hardware.count("T4"), 1U);
}

TEST(ModelProfileFile, names_what_is_wrong) {
  const std::string fine = "model: m\nparams_m: 1\ntensors: 2\naccumulating: {T4: 5}\n";
  EXPECT_TRUE(read_profile("p.yaml", fine));
  EXPECT_EQ(read_profile("p.yaml", fine + "spread: {T4: 0.5}\n").error().message,
            "p.yaml:5: spread.T4 0.5: expected a number from 1 to 100");
  EXPECT_EQ(read_profile("p.yaml", fine + "spread: {T5: 2}\n").error().message,
            "p.yaml:5: spread.T5 2: expected a GPU of accumulating or alone");
  EXPECT_EQ(read_profile("p.yaml", fine + "spread: {Tesla T5: 2}\n").error().message,
            "p.yaml:5: spread.Tesla T5 2: expected a GPU of accumulating or alone");
  for (const char* map : {"alone", "spread", "hardware"})
    EXPECT_EQ(read_profile("p.yaml", fine + map + ": {T4: 3, Tesla T4: 4}\n").error().message,
              fmt::format("p.yaml:5: {}.Tesla T4 4: expected one value for T4", map));
  EXPECT_FALSE(read_profile("p.yaml", "model: m\nparams_m: 1e300\ntensors: 2\naccumulating: {T4: 5}\n"));
  EXPECT_FALSE(read_profile("p.yaml", "model: m\nparams_m: 1\ntensors: 2\naccumulating: {T4: 1e300}\n"));
  EXPECT_FALSE(read_profile("p.yaml", fine + "state_mb: -1\n"));
}

}  // namespace
}  // namespace tw::plan
