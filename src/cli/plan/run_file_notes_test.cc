// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/run_file_notes.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/plan/plan_sources.h"

namespace tw::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A folder with a job and its run file.
class RunFileOfJob : public testing::Test {
 protected:
  RunFileOfJob() { std::filesystem::create_directories(folder_); }

  ~RunFileOfJob() override { std::filesystem::remove_all(folder_); }

  Result<plan::Job> job(const std::string& more) const {
    std::ofstream(folder_ + "/job.yaml") << "model: CONV\nrun: run.yaml\n" << more;
    return read_job_file(folder_ + "/job.yaml");
  }

  void write_run_file(const std::string& text) const { std::ofstream(folder_ + "/run.yaml") << text; }

  std::string folder_ = testing::TempDir() + "tw-run-of-job-" + std::to_string(getpid());
};

TEST_F(RunFileOfJob, that_is_missing_or_misspelt_is_an_error_of_the_job) {
  EXPECT_EQ(job("samples: 1e6\n").error().message,
            folder_ + "/run.yaml: cannot be read: No such file or directory");
  write_run_file("training: {ruonds: 10}\n");
  EXPECT_EQ(job("samples: 1e6\n").error().message,
            folder_ + "/run.yaml:1: training.ruonds: unknown key; did you mean \"rounds\"?");
  write_run_file("training: {codec: fp61}\n");
  EXPECT_THAT(run_file_notes(job("samples: 51200\n").value()).value(),
              ElementsAre("run.yaml: codec fp61 gives way to fp16 of the plan"));
  write_run_file("training: {seed: x}\n");
  EXPECT_THAT(run_file_notes(job("samples: 1e6\n").value()).error().message,
              HasSubstr("run.yaml:1: training.seed: expected a whole number"));
}

TEST_F(RunFileOfJob, with_rounds_that_are_not_the_samples_is_noted) {
  write_run_file("training: {target_batch_size: 512, rounds: 10}\n");
  EXPECT_THAT(run_file_notes(job("samples: 50e6\n").value()).value(),
              ElementsAre("run.yaml: rounds 10 are 5,120 of 50,000,000 samples; rounds 97,657 would fit"));
  EXPECT_THAT(run_file_notes(job("samples: 1000\n").value()).value(),
              ElementsAre("run.yaml: rounds 10 are 5,120 and not 1,000 samples; rounds 2 would fit"));
  EXPECT_THAT(run_file_notes(job("samples: 5000\n").value()).value(), IsEmpty()) << "a part of a round";
}

TEST_F(RunFileOfJob, that_gives_way_to_the_job_is_noted_once) {
  write_run_file("training: {target_batch_size: 512, rounds: 10, codec: fp16, mode: delayed}\n");
  EXPECT_THAT(run_file_notes(job("tbs: 32768\nsamples: 327680\ncodec: fp16\nmode: sync\n").value()).value(),
              ElementsAre("run.yaml: target_batch_size 512 gives way to 32768 of the plan; the learning rate "
                          "belongs to one of the two",
                          "run.yaml: mode delayed gives way to sync of the plan"));
  write_run_file("training: {target_batch_size: auto, rounds: 10}\n");
  EXPECT_THAT(run_file_notes(job("tbs: 1000\nsamples: 10000\n").value()).value(),
              ElementsAre(HasSubstr("target_batch_size auto gives way to 1000 of the plan")));
  EXPECT_THAT(run_file_notes(job("samples: 5120\n").value()).value(), IsEmpty()) << "the leader chooses";
}

TEST_F(RunFileOfJob, need_not_be_there) { EXPECT_THAT(run_file_notes({}).value(), IsEmpty()); }

}  // namespace
}  // namespace tw::cli
