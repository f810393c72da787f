// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_file_yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "train/run/run_fields.h"

namespace tw::train {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Overrides = std::vector<std::pair<std::string, std::string>>;

/// A folder with a run file and four data files; gone at the end of the test.
class RunFile : public testing::Test {
 protected:
  RunFile() {
    std::filesystem::create_directories(folder_ + "/data");
    for (const char* name : {"a", "b", "c", "d", "model.pt"}) std::ofstream(folder_ + "/data/" + name) << "x";
  }

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
  std::string data_ =
      "data: {train_inputs: data/a, train_targets: data/b, test_inputs: data/c, test_targets: data/d}\n";
};

TEST_F(RunFile, needs_nothing_but_data) {
  const Result<RunOptions> options = read(data_);
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options.value().model, "mnist-cnn");
  EXPECT_EQ(options.value().data.train_inputs, folder_ + "/data/a");
  EXPECT_EQ(options.value().target_batch_size, RunOptions{}.target_batch_size);
  EXPECT_EQ(options.value().schedule.total_rounds, RunOptions{}.rounds);
}

TEST_F(RunFile, reads_every_section) {
  const Result<RunOptions> result = read(data_ + R"(
model: data/model.pt
training:
  target_batch_size: 1024
  microbatch: 16
  rounds: 7
  seed: 18446744073709551615
  codec: fp16
  error_feedback: true
  exact_batches: true
  rounding: stochastic
  clip_norm: 0.5
  patience: 1500ms
optimizer: {kind: lamb, beta1: 0.8, beta2: 0.95, epsilon: 1e-6, weight_decay: 0.02, nesterov: false}
schedule: {kind: cosine, learning_rate: 5e-4, warmup_rounds: 3, total_rounds: 9, final_share: 0.1}
evaluation: {every: 2, samples: 100, stop_accuracy: 0.97}
checkpoint: {folder: ./kept, every: 5, keep: 4}
)");
  ASSERT_TRUE(result) << result.error().message;
  const RunOptions& o = result.value();
  EXPECT_EQ(o.model, folder_ + "/data/model.pt");
  EXPECT_EQ(o.target_batch_size, 1024U);
  EXPECT_EQ(o.microbatch, 16U);
  EXPECT_EQ(o.rounds, 7U);
  EXPECT_EQ(o.seed, ~std::uint64_t{0});
  EXPECT_EQ(o.codec, codec::Codec::fp16);
  EXPECT_EQ(o.error_feedback, true);
  EXPECT_TRUE(o.exact_batches);
  EXPECT_EQ(o.rounding, Rounding::stochastic);
  EXPECT_EQ(o.patience, std::chrono::milliseconds(1500));
  EXPECT_EQ(o.optimizer.kind, OptimizerKind::lamb);
  EXPECT_EQ(o.optimizer.beta1, 0.8);
  EXPECT_EQ(o.optimizer.beta2, 0.95);
  EXPECT_EQ(o.optimizer.epsilon, 1e-6);
  EXPECT_EQ(o.optimizer.weight_decay, 0.02);
  EXPECT_FALSE(o.optimizer.nesterov);
  EXPECT_EQ(o.clip_norm, 0.5);
  EXPECT_EQ(o.schedule.kind, ScheduleKind::cosine);
  EXPECT_EQ(o.schedule.learning_rate, 5e-4);
  EXPECT_EQ(o.schedule.warmup_rounds, 3U);
  EXPECT_EQ(o.schedule.total_rounds, 9U);
  EXPECT_EQ(o.schedule.final_share, 0.1);
  EXPECT_EQ(o.evaluation.every, 2U);
  EXPECT_EQ(o.evaluation.samples, 100U);
  EXPECT_EQ(o.evaluation.stop_accuracy, 0.97);
  EXPECT_EQ(o.checkpoint.folder, folder_ + "/kept");
  EXPECT_EQ(o.checkpoint.every, 5U);
  EXPECT_EQ(o.checkpoint.keep, 4);
}

TEST_F(RunFile, knows_text_data_by_its_key) {
  const Result<RunOptions> options = read("data: {text: data/a, context: 32}");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options.value().data.kind, DataKind::text);
  EXPECT_EQ(options.value().data.context, 32U);
}

TEST_F(RunFile, knows_tokens_by_their_key_and_a_megatron_index_by_its_name) {
  std::ofstream(folder_ + "/data/t.idx") << "x";
  const Result<RunOptions> raw = read("data: {tokens: data/a, token_type: uint32, test_tokens: data/b}");
  ASSERT_TRUE(raw) << raw.error().message;
  EXPECT_EQ(raw.value().data.kind, DataKind::tokens);
  EXPECT_EQ(raw.value().data.token_type, RawToken::uint32);
  EXPECT_EQ(raw.value().data.test_tokens, folder_ + "/data/b");
  const Result<RunOptions> megatron = read("data: {tokens: data/t.idx}\nevaluation: {every: 2}\n");
  ASSERT_TRUE(megatron) << megatron.error().message;
  EXPECT_EQ(megatron.value().data.kind, DataKind::megatron);
  EXPECT_EQ(complaint("data: {kind: tokens}"), " data.tokens: missing; data of tokens needs it");
  EXPECT_EQ(complaint("data: {kind: megatron, tokens: data/a, token_type: uint16}"),
            "1: data.token_type: the .idx file says how tokens are stored; leave it out");
  EXPECT_THAT(complaint("data: {tokens: data/a, test_share: 0}\nevaluation: {every: 2}\n"),
              HasSubstr("evaluation.every: there is no data to evaluate on"));
}

TEST_F(RunFile, leaves_buffers_to_a_program_with_its_own_model) {
  EXPECT_EQ(complaint("model: own\ntraining: {buffers: leader}\n"),
            "2: training.buffers: with model own the program chooses; say buffers= of run.optimizer()");
}

TEST_F(RunFile, lets_overrides_win_even_over_faults) {
  const auto options = read(data_ + "training: {rounds: many}\n", {{"training.rounds", "5"}});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options.value().rounds, 5U);
  EXPECT_EQ(complaint(data_, {{"training.rounds", "-1"}}),
            "training.rounds: expected a whole number from 1, found \"-1\"");
  EXPECT_EQ(complaint(data_, {{"training.round", "1"}}),
            "training.round: unknown key; did you mean \"rounds\"?");
  EXPECT_EQ(complaint(data_, {{"sed", "1"}}), "sed: unknown key; did you mean \"training.seed\"?");
}

TEST_F(RunFile, takes_paths_in_overrides_from_the_current_folder) {
  const auto options = read(data_ + "checkpoint: {every: 1}", {{"checkpoint.folder", "kept"}});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options.value().checkpoint.folder, (std::filesystem::current_path() / "kept").string());
}

TEST_F(RunFile, suggests_the_key_that_was_meant) {
  EXPECT_EQ(complaint(data_ + "\noptimiser: {kind: sgd}"),
            "3: optimiser: unknown key; did you mean \"optimizer\"?");
  EXPECT_EQ(complaint(data_ + "optimizer: {learning_rate: 1}"),
            "2: optimizer.learning_rate: unknown key; did you mean \"schedule.learning_rate\"?");
  EXPECT_EQ(complaint(data_ + "rounds: 3"), "2: rounds: unknown key; did you mean \"training.rounds\"?");
  EXPECT_EQ(complaint(data_ + "evaluation:\n  frequency: 3"),
            "3: evaluation.frequency: unknown key; known here: every, samples, stop_accuracy");
  EXPECT_EQ(
      complaint(data_ + "optimizer: {kind: adamv}"),
      "2: optimizer.kind: expected sgd or adam or adamw or lamb, found \"adamv\"; did you mean \"adamw\"?");
  EXPECT_THAT(complaint(data_ + "model: mnist-cn"), StartsWith("2: model: neither a built-in model"));
  EXPECT_THAT(complaint(data_ + "model: mnist-cn"), HasSubstr("; did you mean \"mnist-cnn\"?"));
}

TEST_F(RunFile, refuses_values_of_another_kind_or_out_of_range) {
  const auto training = [&](const std::string& text) {
    return complaint(data_ + "training: {" + text + "}");
  };
  EXPECT_EQ(training("rounds: 0"), "2: training.rounds: expected a whole number from 1, found \"0\"");
  EXPECT_EQ(training("rounds: 1.5"), "2: training.rounds: expected a whole number from 1, found \"1.5\"");
  EXPECT_EQ(training("rounds: [1]"), "2: training.rounds: expected a whole number from 1, found [1]");
  EXPECT_EQ(training("microbatch: 1099511627776"),
            "2: training.microbatch: expected a whole number from 1 to 1048576, found "
            "\"1099511627776\"");
  EXPECT_EQ(training("target_batch_size: 4611686018427387904"),
            "2: training.target_batch_size: expected a whole number from 1 to 1000000000, found "
            "\"4611686018427387904\"");
  EXPECT_EQ(training("patience: 1000000000000h"),
            "2: training.patience: expected a duration such as 20s (ms, s, m or h), at most a year, found "
            "\"1000000000000h\"");
  EXPECT_EQ(training("rounds:"), "2: training.rounds: expected a whole number from 1, found nothing");
  EXPECT_EQ(training("seed: -1"), "2: training.seed: expected a whole number, found \"-1\"");
  EXPECT_EQ(
      training("patience: 20"),
      "2: training.patience: expected a duration such as 20s (ms, s, m or h), at most a year, found \"20\"");
  EXPECT_EQ(complaint(data_ + "optimizer: {momentum: 1}"),
            "2: optimizer.momentum: expected a number from 0 and below 1, found \"1\"");
  EXPECT_EQ(complaint(data_ + "schedule: {learning_rate: 0}"),
            "2: schedule.learning_rate: expected a number above 0, found \"0\"");
  EXPECT_EQ(complaint(data_ + "schedule: {learning_rate: .nan}"),
            "2: schedule.learning_rate: expected a number above 0, found \".nan\"");
  EXPECT_EQ(complaint(data_ + "schedule: cosine"), "2: schedule: expected keys with values");
}

TEST_F(RunFile, refuses_what_does_not_fit_together) {
  EXPECT_EQ(complaint(data_ + "training: {target_batch_size: 8}"),
            "2: training.target_batch_size: 8 is smaller than training.microbatch (32)");
  EXPECT_EQ(complaint(data_ + "schedule: {kind: linear, warmup_rounds: 100}"),
            "2: schedule.warmup_rounds: 100 leaves no round to fall: the schedule ends at round 100");
  EXPECT_EQ(complaint(data_ + "evaluation: {stop_accuracy: 0.9}"),
            "2: evaluation.stop_accuracy: needs evaluation.every, the rounds between two evaluations");
  EXPECT_EQ(complaint(data_ + "checkpoint: {folder: none, every: 3}"),
            "2: checkpoint.every: checkpoint.folder is none; leave one of the two out");
  EXPECT_EQ(
      complaint("data: {train_inputs: data/a, train_targets: data/b}\nevaluation: {every: 3}"),
      "2: evaluation.every: there is no data to evaluate on; give data.test_inputs and data.test_targets");
  EXPECT_EQ(complaint("data: {train_inputs: data/a, train_targets: data/b, test_inputs: data/c}"),
            " data.test_targets: missing; data.test_inputs needs it");
}

TEST_F(RunFile, names_data_that_is_missing) {
  EXPECT_EQ(complaint(""),
            " data.train_inputs: missing; idx data needs it (for text data, give data.text)\n"
            " data.train_targets: missing; idx data needs it");
  EXPECT_EQ(complaint("data: {text: nothing.txt}"),
            "1: data.text: no such file: " + folder_ + "/nothing.txt");
  EXPECT_EQ(complaint("data: {kind: text}"), " data.text: missing; text data needs it");
}

TEST_F(RunFile, takes_checkpoints_away_to_a_folder_or_a_bucket_beside_their_own) {
  EXPECT_EQ(complaint(data_ + "checkpoint: {folder: c, every: 1, to: \"gs://bucket/run\"}\n"),
            "2: checkpoint.to: expected a folder or s3://BUCKET/PREFIX, found \"gs://bucket/run\"");
  const Result<RunOptions> stored =
      read(data_ + "checkpoint: {folder: c, every: 1, to: \"s3://bucket/run\"}\n");
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(stored.value().checkpoint.to, "s3://bucket/run");
  EXPECT_THAT(complaint(data_ + "checkpoint: {folder: none, to: away}\n"),
              HasSubstr("checkpoint.to: checkpoint.folder is none"));
  EXPECT_EQ(read(data_ + "checkpoint: {folder: none}\n").value().checkpoint.folder, "none");
  const Result<RunOptions> run = read(data_ + "checkpoint: {folder: c, every: 1, to: away}\n");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run.value().checkpoint.to, folder_ + "/away");
}

TEST_F(RunFile, tells_all_faults_at_once_each_with_its_line) {
  EXPECT_EQ(complaint(data_ + "training:\n  rounds: 0\n  rounds: 1\n  sead: 1\nschedule: {kind: 3}\n"),
            "4: training.rounds: given twice\n"
            "5: training.sead: unknown key; did you mean \"seed\"?\n"
            "3: training.rounds: expected a whole number from 1, found \"0\"\n"
            "6: schedule.kind: expected constant or linear or cosine, found \"3\"");
}

TEST_F(RunFile, places_errors_of_syntax) {
  EXPECT_THAT(complaint("data: [1\ntraining: 2\n"), StartsWith("2: "));
  EXPECT_EQ(complaint("- a\n"), "1: expected keys with values");
  const Result<RunOptions> absent = read_run_file("/nowhere/run.yaml");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().message, "/nowhere/run.yaml: cannot be read: No such file or directory");
}

TEST_F(RunFile, tells_its_paths_for_a_copy_elsewhere) {
  const std::string file = folder_ + "/paths.yaml";
  std::ofstream(file) << "model: mnist-cnn\ndata: {train_inputs: gone/a, train_targets: /data/b}\n"
                         "checkpoint: {folder: ../kept}\n";
  const auto paths = absolute_paths(file);
  ASSERT_TRUE(paths.ok()) << paths.error().message;
  using Pair = std::pair<std::string, std::string>;
  const std::string above = std::filesystem::path(folder_).parent_path().string();
  EXPECT_THAT(paths.value(), testing::ElementsAre(Pair{"checkpoint.folder", above + "/kept"},
                                                  Pair{"data.train_inputs", folder_ + "/gone/a"},
                                                  Pair{"data.train_targets", "/data/b"}));
}

TEST_F(RunFile, names_the_program_that_tw_up_starts_and_peers_do_not_read_it) {
  const std::string file = folder_ + "/own.yaml";
  const std::string text =
      "training: {rounds: 9}\nprogram:\n  command: [python3, train.py, \"a b\", 0.50]\n  files: src/\n"
      "  setup:\n    - pip install -r requirements.txt\n  env: {HF_TOKEN: , SEED: 7}\n  image: own:1\n# end\n"
      "checkpoint: {every: 3, folder: kept}\n";
  std::ofstream(file) << text;
  const auto program = read_program(file);
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_THAT(program.value().command, testing::ElementsAre("python3", "train.py", "a b", "0.50"));
  EXPECT_THAT(program.value().files, testing::ElementsAre("src/"));
  EXPECT_THAT(program.value().setup, testing::ElementsAre("pip install -r requirements.txt"));
  EXPECT_EQ(program.value().env, (std::map<std::string, std::string>{{"HF_TOKEN", ""}, {"SEED", "7"}}));
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
  EXPECT_THAT(complaint("programme: {command: [a]}\n"), HasSubstr("did you mean \"program\"?"));
}

TEST(RunFileReference, has_a_row_for_every_key) {
  const std::string table = run_file_reference();
  EXPECT_THAT(table, HasSubstr("| `training.microbatch` | a whole number from 1 to 1048576 | `32` |"));
  EXPECT_THAT(
      table,
      HasSubstr("| `training.patience` | a duration such as 20s (ms, s, m or h), at most a year | `20s` |"));
  EXPECT_THAT(table, HasSubstr("| `optimizer.kind` | sgd or adam or adamw or lamb | `adamw` |"));
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
