// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "monitor/logs/event_log_json.h"
#include "monitor/logs/test_logs.h"
#include "monitor/report/report.h"

/// The vocabulary of these tests: a folder with a small run in it, processes of `tw`, and what they left
/// behind.
namespace tw {

using namespace std::chrono_literals;

/// Beyond any wait that ends well, also on a machine with other work to do.
inline constexpr std::chrono::seconds kPatience = 60s;

/// Exit code of a peer that left on a notice, or by SIGTERM: its run goes on.
inline constexpr int kGoesOn = 75;

inline bool wait_until(const std::function<bool()>& holds, std::chrono::milliseconds limit = kPatience) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// One process of `tw`. Killed with the object, and with the test program.
class Program {
 public:
  struct Options {
    std::string output{};                        ///< file for stdout and stderr
    std::string separate_errors{};               ///< file for stderr, when it is not to be in output
    std::optional<rlim_t> largest_file_bytes{};  ///< writing more fails, like a full disk
    std::vector<std::string> enter{};            ///< words in front of the program
    std::string program = TW_PROGRAM;
  };

  Program(std::vector<std::string> arguments, Options options) : output_(options.output) {
    arguments.insert(arguments.begin(), options.program);
    arguments.insert(arguments.begin(), options.enter.begin(), options.enter.end());
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) become(words, options);
  }

  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  ~Program() {
    if (exit_code_) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }

  void send(int signal) const { kill(pid_, signal); }

  /// Exit code, or 128 + signal; -1 when it does not end in time.
  int wait(std::chrono::milliseconds limit = kPatience) {
    wait_until([this] { return ended(); }, limit);
    return exit_code_.value_or(-1);
  }

  bool ended() {
    int status = 0;
    if (!exit_code_ && waitpid(pid_, &status, WNOHANG) == pid_)
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return exit_code_.has_value();
  }

  std::string output() const { return content_of(output_); }

  bool says(const std::string& text) const { return output().find(text) != std::string::npos; }

 private:
  [[noreturn]] static void become(const std::vector<char*>& words, const Options& options) {
    const int out = open(options.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    const int errors = options.separate_errors.empty()
                           ? out
                           : open(options.separate_errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when the test program is killed
    dup2(out, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    if (options.largest_file_bytes) {
      const rlimit limit{*options.largest_file_bytes, *options.largest_file_bytes};
      setrlimit(RLIMIT_FSIZE, &limit);
      signal(SIGXFSZ, SIG_IGN);
    }
    execv(words[0], words.data());
    _exit(127);
  }

  std::string output_;
  pid_t pid_;
  std::optional<int> exit_code_;
};

struct TestRun {
  std::uint64_t rounds = 8;
  std::uint64_t batch = 256;
  bool exact_batches = false;
};

/// A folder with run file and token; removed in the end. A failed test leaves what the programs printed in
/// its report.
class ProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "tw-e2e-" + std::to_string(getpid()) + "-" + test->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Program init = tw({"init", path("run")}, "init");
    ASSERT_EQ(init.wait(), 0) << init.output();
  }

  void TearDown() override {
    if (HasFailure() && shows_logs_) show_logs();
    std::filesystem::remove_all(folder_);
  }

  /// A failed test keeps its logs elsewhere.
  void keep_quiet() { shows_logs_ = false; }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  const std::string& folder() const { return folder_; }

  /// A run file; extra: further lines of YAML.
  std::string write_run(const TestRun& run, const std::string& extra = "",
                        const std::string& name = "run.yaml") const {
    std::ofstream(path(name)) << "training:\n  target_batch_size: " << run.batch
                              << "\n  rounds: " << run.rounds
                              << "\n  exact_batches: " << (run.exact_batches ? "true" : "false")
                              << "\n  codec: fp32\n"
                              << extra;
    return path(name);
  }

  Program tw(std::vector<std::string> arguments, const std::string& name = "tw") const {
    return Program(std::move(arguments),
                   {.output = path(name + ".txt"), .separate_errors = {}, .largest_file_bytes = {}});
  }

  /// The toy program (tests/toy/toy.c). words: its options, and settings KEY=VALUE; of two the last one
  /// counts.
  Program toy(const std::string& name, std::vector<std::string> words) const {
    return Program(
        std::move(words),
        {.output = path(name + ".txt"), .separate_errors = {}, .largest_file_bytes = {}, .program = TW_TOY});
  }

  /// Words of one peer with its event log in out/, whose batch takes 5 ms.
  std::vector<std::string> words_of(std::uint64_t id, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"--work-ms", "5", "progress=line", "id=" + std::to_string(id),
                                      "out=" + path("out")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  /// One peer of a run that the token of this folder admits to.
  Program peer(const std::string& run_file, std::uint64_t id, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"run_file=" + run_file, "run=" + path("run")});
    return toy("peer-" + std::to_string(id), words_of(id, more));
  }

  std::vector<monitor::LogEntry> log_of(std::uint64_t id) const {
    auto log = monitor::read_event_log(path("out/" + monitor::event_log_name(PeerId{id})));
    return log ? std::move(log).value() : std::vector<monitor::LogEntry>{};
  }

  /// Events of a phase in the log of a peer, from a round on.
  std::vector<world::Event> events_of(std::uint64_t id, world::Phase phase, Round from = 0) const {
    std::vector<world::Event> events;
    for (const monitor::LogEntry& entry : log_of(id))
      if (entry.event.phase() == phase && entry.event.round >= from) events.push_back(entry.event);
    return events;
  }

  bool wait_for_round(std::uint64_t id, Round round) const {
    return wait_until([&] { return !events_of(id, world::Phase::commit, round).empty(); });
  }

  /// Where a peer listens, once it does.
  std::string address_of(std::uint64_t id) const {
    wait_until([&] { return !events_of(id, world::Phase::start).empty(); });
    const auto started = events_of(id, world::Phase::start);
    return started.empty() ? "" : started.front().as<event::Start>()->address;
  }

  Round last_round(std::uint64_t id) const {
    const auto commits = events_of(id, world::Phase::commit);
    return commits.empty() ? 0 : commits.back().round;
  }

  monitor::Summary summary() const {
    const auto logs = monitor::read_event_logs(path("out"));
    EXPECT_TRUE(logs) << logs.error().message;
    return logs ? summarize(logs.value()) : monitor::Summary{};
  }

  nlohmann::json summary_json() const {
    return nlohmann::json::parse(content_of(path("out/summary.json")), nullptr, false);
  }

 private:
  void show_logs() const {
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder_)) {
      const std::string extension = file.path().extension().string();
      if (extension == ".txt" || extension == ".log")
        std::cerr << "---- " << file.path().filename().string() << "\n" << content_of(file.path().string());
    }
  }

  std::string folder_;
  bool shows_logs_ = true;
};

}  // namespace tw
