// SPDX-License-Identifier: Apache-2.0
#include "launch/local/program_crew.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "host/system/early_signals.h"
#include "launch/engine.h"
#include "launch/local/child.h"

namespace tw::launch {
namespace {

constexpr std::int64_t kGrace_ns = 3'000'000'000;
constexpr int kLookEvery_ms = 50;

constexpr std::array<int, 4> kPassedOn = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
constexpr std::int64_t kTwice_ns = 1'000'000'000;

/// How often each of them came.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a signal handler reaches nothing else
constinit std::array<std::atomic<int>, kPassedOn.size()> signals_seen{};

void count_signal(int signal) {
  for (std::size_t i = 0; i < kPassedOn.size(); ++i)
    if (kPassedOn[i] == signal) ++signals_seen[i];
}

int all_signals_seen() {
  int all = 0;
  for (const std::atomic<int>& seen : signals_seen) all += seen;
  return all;
}

/// Signals are counted as long as it lives, and those that came before it.
class SignalCount {
 public:
  SignalCount() {
    for (std::atomic<int>& seen : signals_seen) seen = 0;

    struct sigaction action {};

    action.sa_handler = count_signal;
    for (std::size_t i = 0; i < kPassedOn.size(); ++i) sigaction(kPassedOn[i], &action, &before_[i]);
    for (const int early : host::take_early_signals()) count_signal(early);
  }

  SignalCount(const SignalCount&) = delete;
  SignalCount& operator=(const SignalCount&) = delete;

  ~SignalCount() {
    for (std::size_t i = 0; i < kPassedOn.size(); ++i) sigaction(kPassedOn[i], &before_[i], nullptr);
  }

 private:
  std::array<struct sigaction, kPassedOn.size()> before_{};
};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// This process in its child, until the program begins. One thread: nothing of ours runs beside.
[[noreturn]] void become(const std::vector<std::string>& words, const std::vector<Variable>& environment,
                         int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  for (const int signal : kPassedOn) std::signal(signal, SIG_DFL);
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  setpgid(0, 0);  // signals of the terminal come through the parent
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<std::string> texts = words;
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  execvp(pointers.front(), pointers.data());
  fmt::print(stderr, "{}: cannot be started: {}\n", words.front(), std::strerror(errno));
  std::fflush(stderr);
  _exit(127);
}

std::string verdict_file(const std::string& folder, std::size_t number) {
  return fmt::format("{}/verdict-{}", folder, number + 1);
}

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

}  // namespace

ProgramCrew::ProgramCrew(Options options) : options_(std::move(options)) {
  for (std::size_t i = 0; i < options_.environments.size(); ++i) {
    processes_.push_back({.number = i});
    if (!options_.folder.empty())
      options_.environments[i].emplace_back(kVerdict, verdict_file(options_.folder, i));
  }
}

Status ProgramCrew::start(Process& process) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return Error{fmt::format("cannot make a pipe: {}", std::strerror(errno))};
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) become(options_.words, options_.environments[process.number], ends[1], parent);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return Error{fmt::format("cannot start another process: {}", std::strerror(errno))};
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  process.pid = pid;
  process.output = ends[0];
  return Unit{};
}

int ProgramCrew::run() {
  const SignalCount counted;
  for (Process& process : processes_) {
    if (const Status started = start(process); !started) {
      options_.say(started.error().message);
      first_failure_ = 1;
      process.ended = true;
    }
  }
  while (!std::ranges::all_of(processes_, &Process::ended)) {
    std::vector<pollfd> polled;
    for (const Process& process : processes_) polled.push_back({process.output, POLLIN, 0});
    poll(polled.data(), polled.size(), kLookEvery_ms);  // a signal ends it early
    pass_on_signals();
    for (Process& process : processes_) {
      read_from(process);
      reap(process);
    }
  }
  count_late_failures();
  if (well_ > 0 && signals_ == 0 && first_failure_ >= 128)
    return 0;  // those that were lost are why it is here
  if (left_ > 0 && well_ == 0 && !first_failure_) return kGoesOn;
  return first_failure_.value_or(0);
}

void ProgramCrew::pass_on_signals() {
  if (kill_at_ns_ != 0 && now_ns() >= kill_at_ns_) {
    for (const Process& process : processes_) {
      if (!process.ended) kill(process.pid, SIGKILL);
    }
  }
  for (std::size_t i = 0; i < kPassedOn.size(); ++i)
    if (const int times = signals_seen[i] - passed_[i]; times > 0) pass_on(i, times);
}

void ProgramCrew::pass_on(std::size_t which, int times) {
  const int signal = kPassedOn[which];
  const bool told_before = signals_ > 0;
  passed_[which] += times;
  signals_ += times;
  const bool again = terminated_at_ns_ != 0 && now_ns() - terminated_at_ns_ >= kTwice_ns;
  if (signal == SIGTERM && terminated_at_ns_ == 0) terminated_at_ns_ = now_ns();
  const bool at_once = signal == SIGINT ? told_before || times > 1 : signal == SIGTERM && again;
  if (at_once) kill_at_ns_ = now_ns() + kGrace_ns;
  for (const Process& process : processes_) {
    if (!process.ended) kill(process.pid, signal);
  }
}

void ProgramCrew::read_from(Process& process) {
  if (process.output < 0) return;
  std::array<char, 4096> buffer{};
  ssize_t got = 0;
  while ((got = read(process.output, buffer.data(), buffer.size())) > 0) {
    process.rest.append(buffer.data(), static_cast<std::size_t>(got));
    // A progress line that is written over itself ends with \r.
    for (std::size_t end = 0; (end = process.rest.find_first_of("\r\n")) != std::string::npos;) {
      if (end > 0) print(process, process.rest.substr(0, end));
      process.rest.erase(0, end + 1);
    }
  }
}

void ProgramCrew::print(const Process& process, const std::string& line) const {
  options_.out(fmt::format("[{}] {}", process.number + 1, line));
}

void ProgramCrew::reap(Process& process) {
  int status = 0;
  if (process.ended || waitpid(process.pid, &status, WNOHANG) != process.pid) return;
  read_from(process);
  if (!process.rest.empty()) print(process, std::exchange(process.rest, {}));
  close(process.output);
  process.output = -1;
  if (WIFSIGNALED(status) && starts_again(process, WTERMSIG(status))) return;
  process.ended = true;
  judge(process, status);
}

bool ProgramCrew::starts_again(Process& process, int signal) {
  if (all_signals_seen() != 0 || process.restarts >= options_.restarts) return false;
  if (well_ > 0) {
    options_.say(fmt::format("process {} was ended by signal {}; the run is over, so it is not started again",
                             process.number + 1, signal));
    return false;
  }
  ++process.restarts;
  options_.say(
      fmt::format("process {} was ended by signal {}; starting it again", process.number + 1, signal));
  std::vector<Variable>& environment = options_.environments[process.number];
  if (has_begun()) environment.emplace_back("TRADEWIND_REJOIN", "1");
  for (const char* of_one_start : {"TRADEWIND_ANEW", "TRADEWIND_NO_REJOIN"})
    environment.emplace_back(of_one_start, "");
  if (!options_.folder.empty()) std::remove(verdict_file(options_.folder, process.number).c_str());
  return start(process).ok();
}

void ProgramCrew::judge(Process& process, int status) {
  const bool lost = WIFSIGNALED(status);
  const int code = code_of(process, status);
  if (code == 0) ++well_;
  if (code == kGoesOn) ++left_;
  if (code == 0 || code == kGoesOn) return;
  if (process.restarts > 0 && !lost && verdict_of(process) == "joining") {
    process.late = code;
    return;
  }
  if (signals_ == 0 && kill_at_ns_ == 0 && !lost && WEXITSTATUS(status) == 0 && never_joined(process))
    options_.say(
        fmt::format("process {} ended with exit code 0 and never took part in the run: does it call "
                    "tradewind.join() and step()?",
                    process.number + 1));
  else if (signals_ == 0 && kill_at_ns_ == 0)
    options_.say(fmt::format("process {} ended with {} {}", process.number + 1, lost ? "signal" : "exit code",
                             lost ? WTERMSIG(status) : code));
  if (!first_failure_ || (*first_failure_ >= 128 && !lost)) first_failure_ = code;
  end_those_that_wait(process);
}

std::string ProgramCrew::verdict_of(const Process& process) const {
  return options_.folder.empty() ? "" : first_word(verdict_file(options_.folder, process.number));
}

bool ProgramCrew::has_begun() {
  begun_ = begun_ || std::ranges::any_of(processes_, [this](const Process& process) {
             const std::string verdict = verdict_of(process);
             return !verdict.empty() && verdict != "joining" && verdict != "condemned" && verdict != "lost";
           });
  return begun_;
}

/// Nobody else can take the place of one that never joined.
void ProgramCrew::end_those_that_wait(const Process& failed) {
  const auto waits = [this](const Process& process) {
    return !process.ended && verdict_of(process) == "joining";
  };
  if (!options_.all_begin || signals_ > 0 || kill_at_ns_ != 0 || has_begun()) return;
  if (!std::ranges::any_of(processes_, waits)) return;
  options_.say(fmt::format("the run has not begun, and waited for process {}: the others are ended, too",
                           failed.number + 1));
  kill_at_ns_ = now_ns() + kGrace_ns;
  for (const Process& process : processes_)
    if (!process.ended) kill(process.pid, SIGTERM);
}

/// A run that is over cannot be joined any more.
void ProgramCrew::count_late_failures() {
  for (const Process& process : processes_) {
    if (!process.late) continue;
    if (well_ > 0) {
      options_.say(fmt::format("process {} came back after the end of the run; that is no failure",
                               process.number + 1));
      continue;
    }
    options_.say(fmt::format("process {} ended with exit code {}", process.number + 1, *process.late));
    if (!first_failure_ || *first_failure_ >= 128) first_failure_ = process.late;
  }
}

bool ProgramCrew::never_joined(const Process& process) const {
  const std::string verdict = verdict_of(process);
  return options_.must_join && (verdict.empty() || verdict == "joining");
}

/// kGoesOn also where the program does not say it by its own exit code.
int ProgramCrew::code_of(const Process& process, int status) const {
  if (WIFSIGNALED(status)) {
    // Before the program had a handler: it had not joined.
    const bool passed_on = signals_ > 0 && WTERMSIG(status) != SIGINT && WTERMSIG(status) != SIGKILL;
    return passed_on ? kGoesOn : 128 + WTERMSIG(status);
  }
  const int code = WEXITSTATUS(status);
  const std::string verdict = verdict_of(process);
  if (verdict == "lost" && code <= 1) return kUsageExit;
  if (code == 0 && (verdict == "unsaved" || (signals_ == 0 && never_joined(process)))) return 1;
  if ((verdict == "notice" && code == 0) || (verdict == "condemned" && code == 1)) return kGoesOn;
  return code;
}

}  // namespace tw::launch
