// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_file_yaml.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "train/run/run_fields.h"

namespace tw::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using Overrides = std::vector<std::pair<std::string, std::string>>;

/// A folder with a run file; gone at the end of the test.
class RunFile : public testing::Test {
 protected:
  RunFile() { std::filesystem::create_directories(folder_); }

  ~RunFile() override { std::filesystem::remove_all(folder_); }

  Result<RunOptions> read(const std::string& content, const Overrides& overrides = {}) const {
    std::ofstream(path_) << content;
    return read_run_file(path_, overrides);
  }

  /// What is wrong with the content, without the path at the beginning of each line.
  std::string complaint(const std::string& content, const Overrides& overrides = {}) const {
    const Result<RunOptions> options = read(content, overrides);
    if (options) return "none";
    std::string message = options.error().message;
    for (std::size_t at = 0; (at = message.find(path_ + ":")) != std::string::npos;) {
      message.erase(at, path_.size() + 1);
    }
    return message;
  }

  std::string folder_ = testing::TempDir() + "tradewind_run_file_" + std::to_string(::getpid());
  std::string path_ = folder_ + "/run.yaml";
};

TEST_F(RunFile, may_be_empty) {
  const Result<RunOptions> options = read("");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_TRUE(options.value().has_own_model()) << "the program has the model";
  EXPECT_EQ(options.value().batch.size, RunOptions{}.batch.size);
}

TEST_F(RunFile, reads_every_section) {
  const Result<RunOptions> result = read(R"(
training:
  target_batch_size: 1024
  rounds: 7
  seed: 18446744073709551615
  codec: int8
  error_feedback: true
  exact_batches: true
  rounding: stochastic
  norm_cap: 0.5
  patience: 1500ms
checkpoint: {folder: ./kept, every: 5, keep: 4}
budget_usd: 2.5
)");
  ASSERT_TRUE(result) << result.error().message;
  const RunOptions& o = result.value();
  EXPECT_EQ(o.batch.size, 1024U);
  EXPECT_EQ(o.rounds, 7U);
  EXPECT_EQ(o.seed, ~std::uint64_t{0});
  EXPECT_EQ(o.codec, codec::Codec::int8);
  EXPECT_EQ(o.error_feedback, true);
  EXPECT_TRUE(o.exact_batches);
  EXPECT_EQ(o.rounding, Rounding::stochastic);
  EXPECT_EQ(o.norm_cap, 0.5);
  EXPECT_EQ(o.patience, std::chrono::milliseconds(1500));
  EXPECT_EQ(o.checkpoint.folder, folder_ + "/kept");
  EXPECT_EQ(o.checkpoint.every, 5U);
  EXPECT_EQ(o.checkpoint.keep, 4);
  EXPECT_EQ(o.budget.usd, 2.5);
}

TEST_F(RunFile, names_a_folder_or_a_bucket_where_peers_meet) {
  const auto place = [this](const std::string& text) {
    const auto options = read("rendezvous: \"" + text + "\"\n");
    return options ? options.value().checkpoint.rendezvous : options.error().message;
  };
  EXPECT_EQ(place("file:/shared/run"), "/shared/run");
  EXPECT_EQ(place("file:///shared/run"), "/shared/run");
  EXPECT_EQ(place("beside"), folder_ + "/beside");
  EXPECT_EQ(place("s3://bucket/run"), "s3://bucket/run");
  EXPECT_EQ(place("gs://bucket/run"), "gs://bucket/run");
  EXPECT_EQ(place("s3://bucket/run/"), "s3://bucket/run") << "files in it are s3://bucket/run/NAME";
  EXPECT_EQ(place("none"), "none");
  EXPECT_EQ(place("/shared/a:b"), "/shared/a:b");
  for (const char* other : {"az://account/run", "s3:/bucket/run", "file:shared", "s3:bucket"})
    EXPECT_THAT(place(other), HasSubstr("expected a folder such as file:/shared, s3://BUCKET/PREFIX"))
        << other;
}

TEST_F(RunFile, leaves_model_data_and_optimizer_to_the_program) {
  for (const char* section : {"model: own", "data: {text: a}", "optimizer: {kind: sgd}",
                              "schedule: {learning_rate: 1}", "evaluation: {every: 1}"})
    EXPECT_THAT(complaint(section), HasSubstr("the program brings its model, data and optimizer")) << section;
}

TEST_F(RunFile, lets_overrides_win_even_over_faults) {
  const auto options = read("training: {rounds: many}\n", {{"training.rounds", "5"}});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options.value().rounds, 5U);
  EXPECT_EQ(complaint("", {{"training.rounds", "-1"}}),
            "training.rounds: expected a whole number from 1, found \"-1\"");
  EXPECT_EQ(complaint("", {{"training.round", "1"}}),
            "training.round: unknown key; did you mean \"rounds\"?");
  EXPECT_EQ(complaint("", {{"sed", "1"}}), "sed: unknown key; did you mean \"training.seed\"?");
}

TEST_F(RunFile, takes_paths_in_overrides_from_the_current_folder) {
  const auto options = read("checkpoint: {every: 1}", {{"checkpoint.folder", "kept"}});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options.value().checkpoint.folder, (std::filesystem::current_path() / "kept").string());
}

TEST_F(RunFile, makes_no_folder_whose_name_is_that_of_the_home_in_a_shell) {
  const std::string fault = "only a shell takes ~ for a home folder; write the whole path";
  EXPECT_EQ(complaint("checkpoint: {folder: ~/kept}\n"), "1: checkpoint.folder: ~/kept: " + fault);
  EXPECT_EQ(complaint("checkpoint: {to: ~ann/kept}\n"), "1: checkpoint.to: ~ann/kept: " + fault);
  EXPECT_EQ(complaint("", {{"rendezvous", "~/met"}}), "rendezvous: ~/met: " + fault);
  EXPECT_EQ(complaint("checkpoint: {folder: ./~}\n"), "none");
}

TEST_F(RunFile, suggests_the_key_that_was_meant) {
  EXPECT_EQ(complaint("\ntrainning: {rounds: 1}"), "2: trainning: unknown key; did you mean \"training\"?");
  EXPECT_EQ(complaint("rounds: 3"), "1: rounds: unknown key; did you mean \"training.rounds\"?");
  EXPECT_EQ(complaint("checkpoint:\n  frequency: 3"),
            "2: checkpoint.frequency: unknown key; known here: folder, every, keep, to, logs");
  EXPECT_EQ(complaint("training: {rounding: stochastik}"),
            "1: training.rounding: expected nearest or stochastic, found \"stochastik\"; did you mean "
            "\"stochastic\"?");
}

TEST_F(RunFile, refuses_values_of_another_kind_or_out_of_range) {
  const auto training = [&](const std::string& text) { return complaint("training: {" + text + "}"); };
  EXPECT_EQ(training("rounds: 0"), "1: training.rounds: expected a whole number from 1, found \"0\"");
  EXPECT_EQ(training("rounds: 1.5"), "1: training.rounds: expected a whole number from 1, found \"1.5\"");
  EXPECT_EQ(training("rounds: [1]"), "1: training.rounds: expected a whole number from 1, found [1]");
  EXPECT_EQ(training("target_batch_size: 4611686018427387904"),
            "1: training.target_batch_size: expected a whole number from 1 to 1000000000 or auto, found "
            "\"4611686018427387904\"");
  EXPECT_EQ(training("patience: 1000000000000h"),
            "1: training.patience: expected a duration such as 20s (ms, s, m or h), at most a year, found "
            "\"1000000000000h\"");
  EXPECT_EQ(training("rounds:"), "1: training.rounds: expected a whole number from 1, found nothing");
  EXPECT_EQ(training("seed: -1"), "1: training.seed: expected a whole number from 0, found \"-1\"");
  EXPECT_EQ(training("seed: 18446744073709551616"),
            "1: training.seed: expected a whole number from 0, found \"18446744073709551616\"; the largest "
            "is 18446744073709551615");
  EXPECT_EQ(training("target_batch_size: AUTO"),
            "1: training.target_batch_size: expected a whole number from 1 to 1000000000 or auto, found "
            "\"AUTO\"; did you mean \"auto\"?");
  EXPECT_EQ(training("exact_batches: TRUE"),
            "1: training.exact_batches: expected true or false, found \"TRUE\"; did you mean \"true\"?");
  EXPECT_EQ(
      training("patience: 20"),
      "1: training.patience: expected a duration such as 20s (ms, s, m or h), at most a year, found \"20\"");
  EXPECT_EQ(complaint("budget_usd: 0"), "1: budget_usd: expected a number above 0, found \"0\"");
  EXPECT_EQ(complaint("budget_usd: .nan"), "1: budget_usd: expected a number above 0, found \".nan\"");
  EXPECT_EQ(complaint("checkpoint: often"), "1: checkpoint: expected keys with values");
}

TEST_F(RunFile, refuses_what_does_not_fit_together) {
  EXPECT_EQ(complaint("checkpoint: {folder: none, every: 3}"),
            "1: checkpoint.every: checkpoint.folder is none; leave one of the two out");
}

TEST_F(RunFile, refuses_wishes_without_effect_but_no_defaults) {
  EXPECT_EQ(complaint("training: {rounding: stochastic, codec: fp16}"),
            "1: training.rounding: training.codec is fp16; expected int8, or leave the key out");
  EXPECT_EQ(complaint("training: {error_feedback: true}"),
            "1: training.error_feedback: training.codec is fp32; expected a codec that rounds, or leave the "
            "key out");
  EXPECT_EQ(complaint("budget_action: drain"),
            "1: budget_action: no budget_usd is given; give one, or leave the key out");
  for (const char* fine :
       {"training: {rounding: nearest, error_feedback: false}\nbudget_action: warn",
        "training: {error_feedback: true, codec: bf16}", "{budget_usd: 1, budget_action: drain}"})
    EXPECT_EQ(complaint(fine), "none") << fine;
}

TEST_F(RunFile, refuses_exact_batches_where_updates_are_late) {
  EXPECT_THAT(complaint("training: {mode: delayed, exact_batches: true}\n"),
              HasSubstr("1: training.exact_batches: training.mode is delayed: what is lost"));
  EXPECT_TRUE(read("training: {mode: delayed}\n").value().overlaps());
  EXPECT_THAT(complaint("training: {mode: late}\n"),
              HasSubstr("expected sync or delayed or local or streaming, found \"late\""));
}

TEST_F(RunFile, lets_the_leader_choose_the_batch_within_bounds) {
  const auto options = read("training: {target_batch_size: auto, batch_min: 64, batch_max: 1024}\n");
  ASSERT_TRUE(options.ok());
  EXPECT_FALSE(options.value().batch.size.has_value());
  EXPECT_EQ(options.value().target_batch().target_batch_size, 64U);
  EXPECT_EQ(options.value().target_batch().chosen->most, 1024U);
  EXPECT_EQ(read("training: {}\n").value().target_batch().chosen.has_value(), false);
  const auto training = [&](const std::string& text) { return complaint("training: {" + text + "}"); };
  EXPECT_EQ(training("target_batch_size: automatic"),
            "1: training.target_batch_size: expected a whole number from 1 to 1000000000 or auto, found "
            "\"automatic\"");
  EXPECT_EQ(training("target_batch_size: auto, batch_min: 2, batch_max: 1"),
            "1: training.batch_min: expected training.batch_max, which is 1, at most; found 2");
  EXPECT_EQ(training("batch_max: 64"),
            "1: training.batch_max: training.target_batch_size is 512; expected auto, or leave the key out");
  EXPECT_THAT(training("target_batch_size: auto, exact_batches: true"),
              HasSubstr("1: training.exact_batches: training.target_batch_size is auto: batches follow"));
}

TEST_F(RunFile, takes_checkpoints_away_to_a_folder_or_a_bucket_beside_their_own) {
  EXPECT_EQ(complaint("checkpoint: {folder: c, every: 1, to: \"gs://bucket/run\"}\n"),
            "1: checkpoint.to: expected a folder such as file:/shared, or s3://BUCKET/PREFIX, found "
            "\"gs://bucket/run\"");
  EXPECT_THAT(complaint("checkpoint: {to: \"s3:/bucket/run\"}\n"), HasSubstr("found \"s3:/bucket/run\""));
  EXPECT_THAT(complaint("checkpoint: {folder: \"s3://bucket/run\"}\n"),
              HasSubstr("expected a folder or none, found \"s3://bucket/run\""));
  EXPECT_EQ(read("checkpoint: {to: \"file:/shared/run\"}\n").value().checkpoint.to, "/shared/run");
  const Result<RunOptions> stored = read("checkpoint: {folder: c, every: 1, to: \"s3://bucket/run\"}\n");
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(stored.value().checkpoint.to, "s3://bucket/run");
  EXPECT_THAT(complaint("checkpoint: {folder: none, to: away}\n"),
              HasSubstr("checkpoint.to: checkpoint.folder is none"));
  EXPECT_EQ(read("checkpoint: {folder: none}\n").value().checkpoint.folder, "none");
  const Result<RunOptions> run = read("checkpoint: {folder: c, every: 1, to: away}\n");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run.value().checkpoint.to, folder_ + "/away");
}

TEST_F(RunFile, tells_all_faults_at_once_each_with_its_line) {
  EXPECT_EQ(complaint("training:\n  rounds: 0\n  rounds: 1\n  sead: 1\ncheckpoint: {keep: 0}\n"),
            "3: training.rounds: given twice\n"
            "4: training.sead: unknown key; did you mean \"seed\"?\n"
            "2: training.rounds: expected a whole number from 1, found \"0\"\n"
            "5: checkpoint.keep: expected a whole number from 1 to 1000, found \"0\"");
}

TEST_F(RunFile, places_errors_of_syntax) {
  EXPECT_THAT(complaint("training: [1\ncheckpoint: 2\n"), StartsWith("2: "));
  EXPECT_EQ(complaint("- a\n"), "1: expected keys with values");
  const Result<RunOptions> absent = read_run_file("/nowhere/run.yaml");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().message, "/nowhere/run.yaml: cannot be read: No such file or directory");
}

TEST_F(RunFile, tells_its_paths_for_a_copy_elsewhere) {
  const std::string file = folder_ + "/paths.yaml";
  std::ofstream(file) << "training: {rounds: 1}\ncheckpoint: {folder: ../kept, to: copies}\n"
                      << "rendezvous: \"s3://bucket/run\"\n";
  using Pair = std::pair<std::string, std::string>;
  const std::string above = std::filesystem::path(folder_).parent_path().string();
  const Pair kept{"checkpoint.folder", above + "/kept"};
  EXPECT_THAT(absolute_paths(file).value(), ElementsAre(kept, Pair{"checkpoint.to", folder_ + "/copies"}));
  const std::string here = std::filesystem::current_path().string();
  EXPECT_THAT(absolute_paths(file, {{"checkpoint.to", "s3://bucket/copies"}, {"rendezvous", "meet"}}).value(),
              ElementsAre(kept, Pair{"rendezvous", here + "/meet"}));
}

TEST_F(RunFile, names_the_program_that_tw_up_starts_and_peers_do_not_read_it) {
  const std::string file = folder_ + "/own.yaml";
  const std::string text =
      "training: {rounds: 9}\nprogram:\n  command: [python3, train.py, \"a b\", 0.50]\n  files: src/\n"
      "  setup:\n    - pip install -r requirements.txt\n  env: {HF_TOKEN: , SEED: 7, DEBUG: \"\"}\n  image: "
      "own:1\n# end\n"
      "checkpoint: {every: 3, folder: kept}\n";
  std::ofstream(file) << text;
  const auto program = read_program(file);
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_THAT(program.value().command, ElementsAre("python3", "train.py", "a b", "0.50"));
  EXPECT_THAT(program.value().files, ElementsAre("src/"));
  EXPECT_THAT(program.value().setup, ElementsAre("pip install -r requirements.txt"));
  EXPECT_THAT(program.value().env,
              ElementsAre(testing::Pair("DEBUG", ""), testing::Pair("HF_TOKEN", std::nullopt),
                          testing::Pair("SEED", "7")));
  EXPECT_EQ(program.value().image, "own:1");
  const auto run = read_run_file(file);
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_TRUE(run.value().has_own_model()) << "the program has the model";
  EXPECT_EQ(without_program(file, text).value(),
            "training: {rounds: 9}\ncheckpoint: {every: 3, folder: kept}\n");
  EXPECT_FALSE(without_program(file, "{program: {command: [a]}, training: {rounds: 2}}").ok());
}

TEST_F(RunFile, says_what_is_wrong_with_a_program) {
  EXPECT_EQ(complaint("program: {command: python3 train.py}\n"),
            "1: program.command: expected a list of words such as [python3, train.py], found \"python3 "
            "train.py\"");
  EXPECT_THAT(complaint("program: {comand: [a]}\n"), HasSubstr("did you mean \"command\"?"));
  EXPECT_THAT(complaint("program: {files: a}\n"), HasSubstr("program.command is missing"));
  EXPECT_THAT(complaint("program: {command: [a], env: {2x: 1}}\n"), HasSubstr("expected a name of letters"));
  EXPECT_THAT(complaint("program: {command: [a], env: {TRADEWIND_ID: 1}}\n"), HasSubstr("tw up sets these"));
  EXPECT_THAT(complaint("program: {command: [a], env: [A=1]}\n"), HasSubstr("expected KEY: VALUE pairs"));
  EXPECT_THAT(complaint("program: {command: [a], env: {A: []}}\n"), HasSubstr("env.A: expected one value"));
  for (const char* nothing : {"null", "~", ""})
    EXPECT_THAT(
        complaint(fmt::format("program: {{command: [a, --resume, {}, b]}}\n", nothing)),
        HasSubstr("1: program.command: word 3 is null, ~ or left out, which YAML reads as nothing; write "
                  "it in quotes"))
        << nothing;
  EXPECT_THAT(complaint("programme: {command: [a]}\n"), HasSubstr("did you mean \"program\"?"));
}

TEST(RunFileReference, has_a_row_for_every_key) {
  const std::string table = run_file_reference();
  EXPECT_THAT(table, HasSubstr("| `training.rounds` | a whole number from 1 | `100` |"));
  EXPECT_THAT(
      table,
      HasSubstr("| `training.patience` | a duration such as 20s (ms, s, m or h), at most a year | `20s` |"));
  EXPECT_THAT(table, HasSubstr("| `checkpoint.keep` | a whole number from 1 to 1000 | `2` |"));
}

TEST(RunFileReference, is_what_the_documentation_says) {
  std::ifstream file(std::string(TW_SOURCE_DIR) + "/docs/run_file.md");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_TRUE(text.ends_with(run_file_reference())) << "docs/run_file.md should end with:\n"
                                                    << run_file_reference();
}

}  // namespace
}  // namespace tw::train
