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
  EXPECT_EQ(job.purchases, std::vector{market::Purchase::spot});
  EXPECT_LT(job.bytes_per_param, 1.1);
  EXPECT_TRUE(job.delayed());
}

TEST(JobFile, a_target_loss_becomes_samples) {
  const Job job =
      read_job("job.yaml", "model: CONV\ntbs: 1\nloss: 3\nloss_law: {floor: 1, scale: 200, exponent: 0.5}\n")
          .value();
  EXPECT_NEAR(job.samples, 10000, 1e-6);
}

TEST(JobFile, work_is_counted_in_tokens_epochs_or_images) {
  const auto samples = [](const std::string& work) {
    const auto job = read_job("job.yaml", "model: CONV\ntbs: 1\nwork: " + work + "\n");
    EXPECT_TRUE(job.ok()) << job.error().message;
    return job ? job.value().samples : 0;
  };
  EXPECT_NEAR(samples("{tokens: 10e9, sequence: 1024}"), 10e9 / 1024, 1e-6);
  EXPECT_EQ(samples("{images: 50e6}"), 50e6);
  EXPECT_EQ(samples("{epochs: 90, dataset: 1.28e6}"), 90 * 1.28e6);
  EXPECT_THAT(job_error("work: {tokens: 1e9, sequence: 8}\n"), HasSubstr("samples 1e6: expected one of"));
  const auto complaint = [](const std::string& work) {
    return read_job("job.yaml", "model: CONV\ntbs: 1\nwork: " + work + "\n").error().message;
  };
  EXPECT_THAT(complaint("{tokens: 1e9}"), HasSubstr("work.sequence is missing"));
  EXPECT_THAT(complaint("{epochs: 3}"), HasSubstr("work.dataset is missing"));
  EXPECT_THAT(complaint("{token: 3}"), HasSubstr("\"work.tokens\""));
}

TEST(JobFile, a_transformer_is_named_by_its_size) {
  const Job job = read_job("job.yaml",
                           "model: {params_m: 1300, sequence: 2048, microbatch: 4}\ntbs: 512\n"
                           "work: {tokens: 2048e6}\n")
                      .value();
  EXPECT_EQ(job.samples, 1e6);
  const Workload work = workload_of(job, "job.yaml").value();
  EXPECT_EQ(work.model.params_m, 1300);
  EXPECT_EQ(work.model.sequence, 2048);
  EXPECT_EQ(work.model.microbatch, 4);
}

TEST(JobFile, names_of_the_market_have_their_proper_form) {
  const Job job =
      read_job("job.yaml",
               std::string(kShort) +
                   "gpus: [t4, 4xt4]\nproviders: [gc, Amazon]\nregions: [gc:us]\n"
                   "purchase: [spot, on-demand]\nexclude: [k80, google, \"gc:us\", on_demand, us-west1]\n")
          .value();
  EXPECT_EQ(job.gpus, (std::vector<std::string>{"T4", "4xT4"}));
  EXPECT_EQ(job.providers, (std::vector<std::string>{"gcp", "aws"}));
  EXPECT_EQ(job.regions, std::vector<std::string>{"gcp:us"});
  EXPECT_EQ(job.purchases, (std::vector{market::Purchase::spot, market::Purchase::on_demand}));
  EXPECT_EQ(job.exclude, (std::vector<std::string>{"K80", "gcp", "gcp:us", "on-demand", "us-west1"}));
}

TEST(JobFile, codec_and_mode_are_settings_of_the_run_where_it_names_them) {
  EXPECT_THAT(read_job("job.yaml", kShort).value().settings, testing::IsEmpty());
  EXPECT_EQ(read_job("job.yaml", std::string(kShort) + "codec: int8\nmode: delayed\n").value().settings,
            (std::vector<std::string>{"training.codec=int8", "training.mode=delayed"}));
}

TEST(JobFile, every_mode_of_a_run_is_taken_and_two_of_them_hide_averaging) {
  for (const auto& [mode, hides] :
       {std::pair{"sync", false}, {"delayed", true}, {"local", false}, {"streaming", true}}) {
    const auto job = read_job("job.yaml", std::string(kShort) + "mode: " + mode + "\n");
    ASSERT_TRUE(job.ok()) << job.error().message;
    EXPECT_EQ(job.value().mode, mode);
    const Workload workload = workload_of(job.value(), "job.yaml").value();
    EXPECT_EQ(workload.delayed, hides) << mode;
    EXPECT_EQ(workload.bytes_per_param, mode == std::string("streaming") ? 0.5 : 2) << "a fragment a round";
    EXPECT_EQ(job.value().settings, std::vector{std::string("training.mode=") + mode});
  }
}

TEST(JobFile, owned_machines_at_one_place_are_counted_together) {
  const Job job =
      read_job("job.yaml", std::string(kShort) + "owned: [2xT4@onprem:eu, 3xT4@onprem:eu]\n").value();
  EXPECT_EQ(to_string(job.owned), "5xT4@onprem:eu");
  EXPECT_THAT(job_error("owned: [2xT4@onprem:eu spot]\n"), HasSubstr("leave out the word spot"));
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
