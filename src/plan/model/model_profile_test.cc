// SPDX-License-Identifier: Apache-2.0
#include "plan/model/model_profile.h"

#include <gtest/gtest.h>

#include "market/gpu_name.h"

namespace tw::plan {
namespace {

ModelProfile model() {
  return {.name = "net",
          .params_m = 100,
          .tensors = 10,
          .microbatch = 32,
          .accumulating = {{"T4", {50, 1.02, "runs"}}}};
}

TEST(Speed, is_the_measured_one_where_there_is_one) {
  const Speed speed = speed_of(model(), "T4", Gpus::built_in()).value();
  EXPECT_TRUE(speed.measured);
  EXPECT_EQ(speed.samples_per_s, (Estimate{50, 50 / 1.02, 51}));
}

TEST(Speed, accumulating_costs_passes_over_memory) {
  ModelProfile lone = model();
  lone.accumulating.clear();
  lone.alone["T4"] = {40, 1.03, "baseline"};
  const double microbatch_s = 32.0 / 40 + 5.6 * 100e6 * 4 / 320e9;
  EXPECT_NEAR(speed_of(lone, "T4", Gpus::built_in()).value().samples_per_s.value, 32 / microbatch_s, 1e-9);
}

TEST(Speed, of_a_gpu_that_nobody_measured_follows_flops_and_says_so) {
  const Speed speed = speed_of(model(), "A100", Gpus::built_in()).value();
  EXPECT_FALSE(speed.measured);
  EXPECT_NEAR(speed.samples_per_s.value, 50 * 312.0 / 65, 1e-9);
  EXPECT_NEAR(speed.samples_per_s.high / speed.samples_per_s.value, 2, 1e-9);
  EXPECT_NEAR(speed.samples_per_s.value / speed.samples_per_s.low, 2, 1e-9);
}

TEST(Models, are_found_in_any_case) { EXPECT_EQ(Models::built_in().find("conv").value().name, "CONV"); }

TEST(Speed, of_a_machine_with_several_gpus_is_their_sum_with_a_wider_range) {
  const Speed one = speed_of(model(), "T4", Gpus::built_in()).value();
  const Speed four = speed_of(model(), "4xT4", Gpus::built_in()).value();
  EXPECT_FALSE(four.measured);
  EXPECT_NEAR(four.samples_per_s.value, 4 * one.samples_per_s.value, 1e-9);
  EXPECT_LT(four.samples_per_s.low, 3 * one.samples_per_s.low);
  EXPECT_FALSE(speed_of(model(), "4xT5", Gpus::built_in()).ok());
  EXPECT_FALSE(market::several_gpus("DGX2-8xV100"));
  EXPECT_FALSE(market::several_gpus("1xT4"));
  EXPECT_EQ(several_gpus_text("4xT4", false),
            "4xT4: one peer, counted as 4 T4; the program has to use all of them (torchrun and group=, "
            "docs/python.md), for a plain process uses one");
  EXPECT_EQ(several_gpus_text("4xT4", true) + several_gpus_text("T4", false), "");
}

TEST(Speed, that_nobody_measured_says_what_is_assumed_and_which_command_measures_it) {
  ModelProfile mine{.name = "mine", .cpu_cores = 4, .file = "mine.yaml", .command = "python3 train.py"};
  mine.accumulating["cpu"] = {16, 1.02, "mine.yaml"};
  const Speed by_cores = speed_of(mine, "T4", Gpus::built_in()).value();
  EXPECT_DOUBLE_EQ(by_cores.samples_per_s.value, 16 / (4 * 0.4) * 65);
  EXPECT_DOUBLE_EQ(by_cores.samples_per_s.low, by_cores.samples_per_s.value / 5);
  EXPECT_FALSE(by_cores.measured);
  EXPECT_EQ(
      by_cores.source,
      "nobody measured it there; assumed from 4 cores of a processor, 130 to 3,250; on one rented hour: tw "
      "profile -o mine.yaml -- python3 train.py");
  mine.accumulating["T4"] = {100, 1.02, "mine.yaml"};
  EXPECT_EQ(speed_of(mine, "T4", Gpus::built_in()).value().source, "mine.yaml");
  const Speed by_flops = speed_of(mine, "A10", Gpus::built_in()).value();
  EXPECT_NEAR(by_flops.samples_per_s.value, 100 * 125.0 / 65, 1e-9) << "a GPU says more than a processor";
  EXPECT_TRUE(
      by_flops.source.starts_with("nobody measured it there; assumed from the FLOPS of other GPUs, "));
}

TEST(Speed, names_what_is_unknown) {
  EXPECT_TRUE(speed_of(model(), "T5", Gpus::built_in())
                  .error()
                  .message.starts_with("T5: unknown GPU; known are A10"));
  EXPECT_EQ(speed_of({.name = "net"}, "T4", Gpus::built_in()).error().message,
            "net: no speed of any GPU is known; measure one: tw profile -o model.yaml -- COMMAND");
  EXPECT_TRUE(
      Models::built_in().find("RN51").error().message.starts_with("RN51: unknown model; known are CONV"));
}

TEST(Models, name_the_row_that_is_wrong) {
  const std::string head = "model,params_m,tensors,microbatch,data_mb_per_sample,matchmaking_s\n";
  const std::string speeds = "model,gpu,how,samples_per_s,factor,source\n";
  EXPECT_EQ(read_models(head + "net,-1,10,32,0.1,5\n", speeds).error().message,
            "models.csv:2: params_m -1: expected a number from 1e-06");
  EXPECT_EQ(read_models(head + "net,1,10,32,0.1,5\n", speeds + "other,T4,alone,5,1.1,x\n").error().message,
            "speeds.csv:2: model other: expected one of models.csv");
}

/// For all GPUs that ran the same model, FLOPS estimates of one by another lie in the given range.
TEST(Models, flops_estimate_known_speeds_within_the_range) {
  for (const auto& [name, full] : Models::built_in().all()) {
    for (const auto& [gpu, measured] : full.accumulating) {
      ModelProfile without = full;
      without.accumulating.erase(gpu);
      without.alone.erase(gpu);
      if (without.accumulating.empty()) continue;
      const Estimate range = speed_of(without, gpu, Gpus::built_in()).value().samples_per_s;
      EXPECT_GE(measured.samples_per_s, range.low) << name << " on " << gpu;
      EXPECT_LE(measured.samples_per_s, range.high) << name << " on " << gpu;
    }
  }
}

TEST(SpeedOf, a_model_of_text_is_estimated_from_its_size_and_marked_so) {
  const ModelProfile gpt{.name = "gpt", .params_m = 124, .sequence = 1024};
  const Speed speed = speed_of(gpt, "A100", Gpus::built_in()).value();
  EXPECT_NEAR(speed.samples_per_s.value, 0.3 * 312e12 / (6 * 124e6 * 1024), 0.01);
  EXPECT_NEAR(speed.samples_per_s.high / speed.samples_per_s.value, 2.5, 1e-9);
  EXPECT_FALSE(speed.measured);
  EXPECT_NE(speed.source.find("assumed from 30 % of the FLOPS of its data sheet"), std::string::npos);
}

TEST(SpeedOf, no_card_is_faster_than_its_peak) {
  ModelProfile other = Models::built_in().find("RBase").value();
  EXPECT_TRUE(speed_of(other, "T4", Gpus::built_in()).ok());
  other.sequence = 1024;
  EXPECT_EQ(speed_of(other, "T4", Gpus::built_in()).error().message,
            "RBase: 418.2 samples/s of 1024 tokens on T4 are 320 TFLOPS (6 a parameter and token), and its "
            "data sheet has 65; expected the model and the sequence that were measured (tw profile -o "
            "model.yaml -- COMMAND)");
  EXPECT_FALSE(speed_of(other, "A10", Gpus::built_in()).ok()) << "even a measured one";
  EXPECT_FALSE(speed_of(other, "4xT4", Gpus::built_in()).ok());
  other.sequence = 128;
  EXPECT_TRUE(speed_of(other, "T4", Gpus::built_in()).ok());
}

}  // namespace
}  // namespace tw::plan
