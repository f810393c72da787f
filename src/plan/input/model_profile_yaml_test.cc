// SPDX-License-Identifier: Apache-2.0
#include "plan/input/model_profile_yaml.h"

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

TEST(ModelProfileFile, names_what_is_wrong) {
  const std::string fine = "model: m\nparams_m: 1\ntensors: 2\naccumulating: {T4: 5}\n";
  EXPECT_TRUE(read_profile("p.yaml", fine));
  EXPECT_EQ(read_profile("p.yaml", fine + "spread: {T4: 0.5}\n").error().message,
            "p.yaml:5: spread.T4 0.5: expected a number from 1 to 100");
  EXPECT_FALSE(read_profile("p.yaml", fine + "spread: {T5: 2}\n")) << "a spread of no speed";
  EXPECT_FALSE(read_profile("p.yaml", fine + "state_mb: -1\n"));
}

}  // namespace
}  // namespace tw::plan
