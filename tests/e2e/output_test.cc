// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "e2e/program.h"
#include "monitor/report/report_text.h"

namespace tw {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t count_of(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class Output : public ProgramTest {
 protected:
  /// A command under a shell: "$@" is the program with its arguments.
  int shell(const std::string& script, std::vector<std::string> arguments, const std::string& errors) const {
    Program program(std::move(arguments), {.output = path("shell.txt"),
                                           .separate_errors = path(errors),
                                           .largest_file_bytes = {},
                                           .enter = {"/bin/sh", "-c", script, "sh"}});
    return program.wait();
  }
};

TEST_F(Output, that_cannot_be_written_is_no_success) {
  const std::vector<std::string> commands[] = {
      {"--help"},
      {"--version"},
      {"run", "--help"},
      {"catalog", "list"},
      {"net", "show"},
      {"catalog", "lifetimes"},
      {"token", path("run")},
      {"catalog", "list", "--json"},
  };
  for (const std::vector<std::string>& command : commands) {
    Program program(command, {.output = "/dev/full", .separate_errors = path("errors.txt")});
    EXPECT_EQ(program.wait(), 1) << testing::PrintToString(command);
    const std::string errors = content_of(path("errors.txt"));
    EXPECT_EQ(count_of("tw: cannot write the output: No space left on device\n", errors), 1U) << errors;
  }
  Program doctor({"doctor", "--folder", path("checkpoints")},  // says no more than that this machine hurts
                 {.output = "/dev/full", .separate_errors = path("errors.txt")});
  EXPECT_EQ(doctor.wait(), 1);
  EXPECT_EQ(count_of("Input/output error", content_of(path("errors.txt"))), 0U);
  EXPECT_EQ(shell(R"("$@" >&-)", {"catalog", "list"}, "closed.txt"), 1);
  EXPECT_THAT(content_of(path("closed.txt")), HasSubstr("cannot write the output: Bad file descriptor"));
}

/// The completion of zsh has the text of every command and option.
TEST_F(Output, explains_each_command_and_option_in_less_than_80_characters) {
  Program program({"completion", "zsh"}, {.output = path("zsh.txt")});
  ASSERT_EQ(program.wait(), 0);
  std::istringstream lines(content_of(path("zsh.txt")));
  std::size_t texts = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t quote = line.find('\''), colon = line.find(':', quote);
    if (!line.starts_with("        '") || colon == std::string::npos) continue;
    EXPECT_LT(line.size() - colon - 2, 80U) << line;
    ++texts;
  }
  EXPECT_GT(texts, 150U);
}

TEST_F(Output, of_the_help_has_groups_and_lines_of_at_most_110_characters) {
  Program program({"--help"}, {.output = path("help.txt")});
  ASSERT_EQ(program.wait(), 0);
  const std::string help = content_of(path("help.txt"));
  for (const char* group : {"\nTrain:\n", "\nPlan:\n", "\nWatch:\n", "\nTest:\n"})
    EXPECT_THAT(help, HasSubstr(group));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 110U) << line;
}

TEST_F(Output, names_the_nearest_command_and_option_after_a_typo) {
  Program command({"repot", path("run")}, {.output = path("command.txt")});
  EXPECT_EQ(command.wait(), 2);
  EXPECT_THAT(content_of(path("command.txt")), HasSubstr("repot: no such command; did you mean \"report\"?"));
  Program help({"help"}, {.output = path("help.txt")});
  EXPECT_EQ(help.wait(), 2);
  EXPECT_THAT(content_of(path("help.txt")), HasSubstr("help: no such command; did you mean \"tw --help\"?"));
  Program version({"-v"}, {.output = path("version.txt")});
  EXPECT_EQ(version.wait(), 2);
  EXPECT_THAT(content_of(path("version.txt")), HasSubstr("tw: unknown argument -v"));
  Program option({"plan", "job.yaml", "--methd", "deepvm"}, {.output = path("option.txt")});
  EXPECT_EQ(option.wait(), 2);
  EXPECT_THAT(content_of(path("option.txt")),
              HasSubstr("tw plan: unknown argument --methd; did you mean \"--method\"?"));
}

TEST_F(Output, that_nobody_reads_to_its_end_ends_the_program_without_a_word) {
  const std::string code = path("code.txt");
  EXPECT_EQ(shell("{ sleep 0.3; \"$@\"; echo $? > " + code + "; } | :", {"catalog", "list"}, "pipe.txt"), 0);
  ASSERT_TRUE(wait_until([&] { return content_of(code).ends_with('\n'); }));
  EXPECT_EQ(content_of(code), std::to_string(128 + SIGPIPE) + "\n");
  EXPECT_EQ(content_of(path("pipe.txt")), "");
}

TEST_F(Output, of_a_program_that_cannot_be_passed_on_is_said_once_at_the_end) {
  Program local({"run", write_run({.rounds = 2}), "--", TW_TOY, "checkpoint.folder=none"},
                {.output = "/dev/full", .separate_errors = path("errors.txt")});
  EXPECT_EQ(local.wait(), 1);
  EXPECT_EQ(content_of(path("errors.txt")), "tw: cannot write the output: No space left on device\n");
}

TEST_F(Output, complaints_that_cannot_be_written_change_no_exit_code) {
  for (const char* errors : {"/dev/full", "/proc/self/none"}) {
    Program missing({"report", path("none")}, {.output = path("out.txt"), .separate_errors = errors});
    EXPECT_EQ(missing.wait(), 2) << errors;
    Program unknown({"trian"}, {.output = path("out.txt"), .separate_errors = errors});
    EXPECT_EQ(unknown.wait(), 2) << errors;
  }
}

TEST_F(Output, does_not_hold_up_or_end_a_peer_that_can_write_nothing_at_all) {
  const std::string run =
      write_run({.rounds = 60}, "checkpoint:\n  folder: checkpoints\n  every: 2\n  keep: 1\n");
  const std::vector<std::string> words =
      words_of(1, {"--values", "10000", "insecure=true", "run_file=" + run});
  Program alone(
      words,
      {.output = "/dev/full", .separate_errors = "/dev/full", .largest_file_bytes = 8000, .program = TW_TOY});
  EXPECT_EQ(alone.wait(), 1) << "the last checkpoint that was promised is missing";
  EXPECT_GE(last_round(1), 1U);
  EXPECT_LT(last_round(1), 60U) << "there was no room for more";
}

/// A file system of 256 KiB.
class SmallDisk {
 public:
  explicit SmallDisk(std::string folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    mounted_ = mount("none", folder_.c_str(), "tmpfs", 0, "size=256k") == 0;
  }

  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  ~SmallDisk() {
    if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
  }

  bool mounted() const { return mounted_; }

  std::string filler() const { return folder_ + "/filler"; }

  /// Until nothing more fits.
  void fill() const {
    std::ofstream file(filler(), std::ios::binary);
    while (file.write("x", 1).flush()) {
    }
  }

 private:
  std::string folder_;
  bool mounted_ = false;
};

TEST_F(Output, of_a_full_disk_is_missing_in_the_log_which_says_so) {
  const SmallDisk disk(path("out"));
  if (!disk.mounted()) GTEST_SKIP() << "may not mount a tmpfs here";
  Program alone = peer(write_run({.rounds = 100'000}), 1);
  ASSERT_TRUE(wait_for_round(1, 3)) << alone.output();
  disk.fill();
  ASSERT_TRUE(wait_until([&] { return alone.says("events are missing in it, training goes on"); }));
  std::this_thread::sleep_for(1s);
  std::filesystem::remove(disk.filler());
  ASSERT_TRUE(wait_until([&] { return alone.says("the event log is written again"); })) << alone.output();
  alone.send(SIGTERM);
  EXPECT_EQ(alone.wait(), kGoesOn) << alone.output();
  EXPECT_EQ(count_of("tradewind: cannot write the event log", alone.output()), 1U) << alone.output();

  Program report = tw({"report", path("out")}, "report");
  EXPECT_EQ(report.wait(), 0);
  EXPECT_THAT(report.output(), testing::ContainsRegex("missing +peer 1: [0-9]+ events between"));
  EXPECT_THAT(report.output(), HasSubstr("(No space left on device)"));
  EXPECT_THAT(report.output(), HasSubstr("identical"));
}

TEST_F(Output, of_a_full_disk_ends_no_peer_of_a_local_run) {
  const SmallDisk disk(path("out"));
  if (!disk.mounted()) GTEST_SKIP() << "may not mount a tmpfs here";
  const std::string run =
      write_run({.rounds = 100}, "checkpoint:\n  folder: out/checkpoints\n  every: 2\n  keep: 1\n");
  Program local = tw(
      {"run", run, "--peers", "2", "--out", path("out"), "--", TW_TOY, "--values", "30000", "--work-ms", "5"},
      "local");
  const auto saved = [&] {
    std::error_code none_yet;
    const std::filesystem::directory_iterator files(path("out/checkpoints"), none_yet);
    return std::ranges::any_of(files, [](const auto& file) { return file.path().extension() == ".tw"; });
  };
  ASSERT_TRUE(wait_until(saved)) << local.output();
  disk.fill();
  EXPECT_EQ(local.wait(), 1) << "the last checkpoint that was promised is missing";
  EXPECT_THAT(local.output(), HasSubstr("no checkpoint, training goes on: "));
}

TEST_F(Output, without_room_for_the_first_line_is_said_at_once_by_a_local_run) {
  const SmallDisk disk(path("out"));
  if (!disk.mounted()) GTEST_SKIP() << "may not mount a tmpfs here";
  std::filesystem::create_directories(path("out/run"));
  disk.fill();
  Program local = tw(
      {"run", write_run({}), "--peers", "2", "--out", path("out/run"), "--insecure", "--", TW_TOY}, "local");
  EXPECT_EQ(local.wait(), 1) << local.output();
  EXPECT_THAT(local.output(), HasSubstr("o space left")) << local.output();
}

TEST_F(Output, of_a_long_run_stays_within_its_limit_and_keeps_its_beginning) {
  Program alone = peer(write_run({.rounds = 400, .batch = 32}), 1, {"log_limit=64KiB", "progress=off"});
  ASSERT_EQ(alone.wait(), 0) << alone.output();
  std::uintmax_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(path("out")))
    if (file.is_regular_file()) bytes += file.file_size();
  EXPECT_LT(bytes, (64U << 10) + 8 * 1000) << "each part ends with the line that fills it";
  EXPECT_EQ(log_of(1).front().event.phase(), world::Phase::start);
  EXPECT_EQ(log_of(1).back().event.phase(), world::Phase::stop);
  const monitor::Summary summary = this->summary();
  EXPECT_EQ(summary.samples, 400U * 32);
  EXPECT_EQ(summary.rounds + summary.unlogged_rounds, 400U);
  EXPECT_GT(summary.unlogged_rounds, 0U);
  ASSERT_EQ(summary.missing.size(), 1U);
  EXPECT_THAT(render(summary), HasSubstr("that no log holds"));
}

}  // namespace
}  // namespace tw
