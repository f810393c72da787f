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
  expected.open = {"mode", "codec", "fragments", "outer"};
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
  EXPECT_THAT(job_error("work: {tokens: 1e9, sequence: 8}\n"),
              testing::StartsWith("job.yaml:3: samples 1e6: expected one of"));
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

TEST(JobFile, names_are_taken_in_any_spelling_and_shown_as_they_were_written) {
  const Job job =
      read_job("job.yaml",
               std::string(kShort) +
                   "gpus: [NVIDIA A100-SXM4-80GB]\nproviders: [Gcpx]\nexclude: [\"T4@gcp:us\", Tesla T4]\n"
                   "purchase: Spot\nquotas: {GCP: 0, Tesla T4: 3, On-Demand: 2}\n"
                   "owned: 1xNVIDIA A10@onprem:eu\ndeepvm: {scores: {tesla t4: 2}}\n")
          .value();
  EXPECT_EQ(job.gpus, std::vector<std::string>{"A100-80GB"});
  EXPECT_EQ(job.exclude.back(), "T4");
  EXPECT_EQ(job.quotas, (std::map<std::string, double>{{"GCP", 0}, {"Tesla T4", 3}, {"On-Demand", 2}}));
  EXPECT_EQ(job.purchases, std::vector{market::Purchase::spot});
  EXPECT_EQ(job.owned, parse_peers("1xA10@onprem:eu").value());
  EXPECT_EQ(job.methods.deepvm_scores.at("T4"), 2);
  EXPECT_EQ(as_written(job, "providers", job.providers.front()), "Gcpx");
  EXPECT_EQ(as_written(job, "exclude", job.exclude.front()), "T4@gcp:us");
  EXPECT_EQ(as_written(job, "exclude", "T4"), "Tesla T4");
  EXPECT_EQ(as_written(job, "gpus", "T4"), "T4") << "as another list has it";
}

TEST(JobFile, is_no_run_file) {
  EXPECT_EQ(job_error("training: {rounds: 4}\nprogram: {command: [a]}\n"),
            "job.yaml: training is of a run file; expected a JOB.yaml (docs/planner.md), whose key run names "
            "that file");
}

TEST(JobFile, two_names_of_one_thing_are_refused) {
  EXPECT_THAT(job_error("quotas: {gcp: 1, google: 2}\n"), HasSubstr("expected one number for gcp"));
  EXPECT_EQ(job_error("deepvm: {scores: {T4: 1, Tesla T4: 2}}\n"),
            "job.yaml:4: deepvm.scores.Tesla T4 2: expected one value for T4");
}

TEST(JobFile, names_have_the_spelling_of_offers) {
  for (const auto& [word, name] : std::initializer_list<std::pair<const char*, const char*>>{
           {"Google", "gcp"}, {"gc:us", "gcp:us"}, {"4xTesla T4", "4xT4"}, {"On_Demand", "on-demand"}})
    EXPECT_EQ(market_name(word), name);
}

TEST(JobFile, numbers_have_upper_bounds) {
  for (const char* line :
       {"budget_usd: 1e300\n", "budget_usd_per_h: 1e300\n", "quotas: {gcp: 1e300}\n",
        "data_usd_per_gb: 1e300\n", "deepvm: {usd_per_h: 1e300}\n", "deepvm: {scores: {T4: 1e300}}\n"})
    EXPECT_THAT(job_error(line), HasSubstr("1e300: expected ")) << line;
}

using Names = std::set<std::string>;
using Settings = std::vector<std::string>;

TEST(JobFile, mode_codec_and_batch_are_open_where_they_are_missing_or_auto) {
  const Job open = read_job("job.yaml", "model: CONV\nsamples: 1e6\nmode: auto\ntbs: auto\n").value();
  EXPECT_EQ(open.open, (Names{"mode", "codec", "tbs", "fragments", "outer"}));
  EXPECT_EQ(open.target_batch_size, kUsualBatch);
  EXPECT_EQ(open.mode, "sync");
  const Job named =
      read_job("job.yaml", std::string(kShort) + "codec: int8\nmode: streaming\nfragments: 2\n").value();
  EXPECT_EQ(named.open, Names{"outer"});
}

TEST(JobFile, a_run_file_names_what_the_job_leaves_open) {
  const char* run =
      "program: {command: [a]}\ntraining: {mode: local, codec: int8, target_batch_size: 1024, outer: mean}\n";
  Job job = read_job("job.yaml", std::string(kShort) + "codec: fp32\n").value();
  const double named = job.target_batch_size;
  take_run_file(job, run);
  EXPECT_EQ(job.mode, "local");
  EXPECT_EQ(job.codec, "fp32") << "as JOB says";
  EXPECT_EQ(job.target_batch_size, named);
  EXPECT_EQ(job.open, Names{"fragments"});
  Job other = read_job("job.yaml", "model: CONV\nsamples: 1e6\n").value();
  take_run_file(other, "training: {target_batch_size: auto, mode: 7}\n");
  EXPECT_EQ(other.open, (Names{"mode", "codec", "tbs", "fragments", "outer"}));
  EXPECT_THAT(settings_of(other), testing::Not(testing::Contains(testing::HasSubstr("batch"))))
      << "leaders choose it";
  take_run_file(other, "- no: run file");
  take_run_file(other, run);
  EXPECT_EQ(other.target_batch_size, 1024);
  EXPECT_THAT(settings_of(other), testing::Contains("training.target_batch_size=1024"));
  EXPECT_EQ(other.bytes_per_param, 1 + 2.0 / 256);
}

TEST(JobFile, a_plan_counts_on_mode_codec_and_batch_as_settings_of_the_run) {
  Job job = read_job("job.yaml", "model: CONV\nsamples: 1e6\ntbs: 1e6\nmode: streaming\n").value();
  job.outer = "nesterov";
  const Settings settings = settings_of(job);
  EXPECT_EQ(settings,
            (Settings{"training.codec=fp16", "training.mode=streaming", "training.target_batch_size=1000000",
                      "training.fragments=4", "training.outer=nesterov"}));
  const Job again = with_settings(read_job("job.yaml", "model: CONV\nsamples: 1\n").value(), settings);
  EXPECT_EQ(again.mode, "streaming");
  EXPECT_EQ(again.target_batch_size, 1e6);
  EXPECT_EQ(again.open, Names{});
}

TEST(JobFile, the_mean_of_contributions_in_int4_travels_as_int8) {
  const Job job = read_job("job.yaml", std::string(kShort) + "codec: int4\n").value();
  EXPECT_EQ(job.bytes_per_param, (0.5 + 2.0 / 64 + 1 + 2.0 / 256) / 2);
}

TEST(JobFile, a_round_sends_as_small_a_part_as_the_run_has_fragments) {
  const auto job = read_job("job.yaml", std::string(kShort) + "mode: streaming\nfragments: 8\n");
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(workload_of(job.value(), "job.yaml").value().fragments, 8);
  EXPECT_TRUE(read_job("job.yaml", std::string(kShort) + "fragments: 8\n").ok()) << "the mode is open";
  for (const char* wrong : {"mode: sync\nfragments: 8\n", "mode: streaming\nfragments: 2.5\n"})
    EXPECT_THAT(read_job("job.yaml", std::string(kShort) + wrong).error().message,
                testing::HasSubstr("expected a whole number from 1 to 64, beside mode: streaming"));
}

TEST(JobFile, every_mode_of_a_run_is_taken_and_two_of_them_hide_averaging) {
  for (const auto& [mode, hides] :
       {std::pair{"sync", false}, {"delayed", true}, {"local", false}, {"streaming", true}}) {
    const auto job = read_job("job.yaml", std::string(kShort) + "mode: " + mode + "\n");
    ASSERT_TRUE(job.ok()) << job.error().message;
    EXPECT_EQ(job.value().mode, mode);
    const Workload workload = workload_of(job.value(), "job.yaml").value();
    EXPECT_EQ(workload.delayed, hides) << mode;
    EXPECT_EQ(workload.round_mb(), 2 * workload.model.params_m / (mode == std::string("streaming") ? 4 : 1));
    EXPECT_THAT(settings_of(job.value()), testing::Contains(std::string("training.mode=") + mode));
  }
}

TEST(JobFile, owned_machines_at_one_place_are_counted_together) {
  const Job job =
      read_job("job.yaml", std::string(kShort) + "owned: [2xT4@onprem:eu, 3xT4@onprem:eu]\n").value();
  EXPECT_EQ(to_string(job.owned), "5xT4@onprem:eu");
  EXPECT_THAT(job_error("owned: [2xT4@onprem:eu spot]\n"), HasSubstr("leave out the word spot"));
}

TEST(JobFile, machines_are_counted_in_whole_numbers) {
  EXPECT_EQ(job_error("peers_max: 4.7\n"),
            "job.yaml:4: peers_max 4.7: expected a whole number from 1 to 256");
  EXPECT_EQ(job_error("domains_min: 2.9\n"),
            "job.yaml:4: domains_min 2.9: expected a whole number from 1 to 16");
  EXPECT_EQ(job_error("offer_max: 1.5\n"),
            "job.yaml:4: offer_max 1.5: expected a whole number from 1 to 256");
  EXPECT_EQ(job_error("quotas: {gcp: 2.5}\n"),
            "job.yaml:4: quotas.gcp 2.5: expected a whole number of peers, from 0 to 1000000");
  EXPECT_EQ(read_job("job.yaml", std::string(kShort) + "peers_max: 4.0\n").value().peers_max, 4);
}

TEST(JobFile, batch_and_length_have_bounds) {
  const auto refusal = [](const std::string& rest) {
    const auto job = read_job("job.yaml", "model: CONV\n" + rest);
    return job ? "" : job.error().message;
  };
  EXPECT_THAT(refusal("tbs: 1.5\nsamples: 1e6\n"), HasSubstr("tbs 1.5: expected a whole number from 1 to "));
  EXPECT_THAT(refusal("tbs: 1e300\nsamples: 1e6\n"), HasSubstr("tbs 1e300: expected a whole number"));
  EXPECT_THAT(refusal("samples: 1e30\n"), HasSubstr("samples 1e30: expected up to 1e+13 samples in all"));
  EXPECT_THAT(refusal("work: {epochs: 1e9, dataset: 1e9}\n"),
              HasSubstr("work.epochs 1e9: expected up to 1e+13 samples in all"));
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
