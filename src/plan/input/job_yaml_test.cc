// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/input/job.h"

namespace tw::plan {
namespace {

using testing::HasSubstr;

constexpr const char* kShort = "model: CONV\ntbs: 1024\nsamples: 1e6\n";

std::string job_error(const std::string& more) {
  const auto job = read_job("job.yaml", kShort + more);
  return job ? "" : job.error().message;
}

TEST(JobFile, what_is_left_out_has_its_default) {
  const Job job = read_job("job.yaml", kShort).value();
  Job expected;
  expected.model = "CONV";
  expected.target_batch_size = 1024;
  expected.samples = 1e6;
  EXPECT_EQ(job, expected);
}

TEST(JobFile, all_limits_are_read) {
  const Job job =
      read_job("job.yaml", std::string(kShort) +
                               "goal: fastest\ndeadline_h: 5\nbudget_usd: 9\nrisk: 0.2\n"
                               "gpus: [T4, A10]\nquotas: {gcp: 4}\nowned: [1xRTX8000@onprem:eu]\n"
                               "purchase: spot\ncodec: int8\nmode: delayed\nshocks_per_day: 0.5\n")
          .value();
  EXPECT_EQ(job.goal, Goal::fastest);
  EXPECT_EQ(job.deadline_h, 5);
  EXPECT_EQ(job.gpus, (std::vector<std::string>{"T4", "A10"}));
  EXPECT_EQ(job.quotas.at("gcp"), 4);
  EXPECT_EQ(job.owned.size(), 1U);
  EXPECT_EQ(job.shocks, (market::ZoneShocks{.per_day = 0.5, .share = 0.5}));
  EXPECT_EQ(job.purchase, market::Purchase::spot);
  EXPECT_LT(job.bytes_per_param, 1.1);
  EXPECT_TRUE(job.delayed);
}

TEST(JobFile, a_target_loss_becomes_samples) {
  const Job job =
      read_job("job.yaml", "model: CONV\ntbs: 1\nloss: 3\nloss_law: {floor: 1, scale: 200, exponent: 0.5}\n")
          .value();
  EXPECT_NEAR(job.samples, 10000, 1e-6);
}

TEST(JobFile, mistakes_are_named_with_their_line) {
  EXPECT_THAT(job_error("goal: quick\n"), HasSubstr("job.yaml:4"));
  EXPECT_THAT(job_error("goal: quick\n"), HasSubstr("quick"));
  EXPECT_THAT(job_error("deadline_hours: 4\n"), HasSubstr("deadline_hours"));
  EXPECT_THAT(job_error("loss: 3\n"), HasSubstr("samples"));
  EXPECT_THAT(job_error("owned: [many]\n"), HasSubstr("many"));
  EXPECT_THAT(job_error("purchase: lease\n"), HasSubstr("on-demand"));
  EXPECT_THAT(job_error("pattern: star\n"), HasSubstr("pattern star: expected one of tradewind, "));
}

}  // namespace
}  // namespace tw::plan
