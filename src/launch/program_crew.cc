// SPDX-License-Identifier: Apache-2.0
#include "launch/program_crew.h"

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

namespace tw::launch {
namespace {

constexpr std::int64_t kGrace_ns = 3'000'000'000;
constexpr int kLookEvery_ms = 50;

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a signal handler reaches nothing else
std::atomic<int> signals_seen = 0;

void count_signal(int) { ++signals_seen; }

/// SIGINT and SIGTERM are counted as long as it lives.
class SignalCount {
 public:
  SignalCount() {
    signals_seen = 0;

    struct sigaction action {};

    action.sa_handler = count_signal;
    sigaction(SIGINT, &action, &before_[0]);
    sigaction(SIGTERM, &action, &before_[1]);
  }

  SignalCount(const SignalCount&) = delete;
  SignalCount& operator=(const SignalCount&) = delete;

  ~SignalCount() {
    sigaction(SIGINT, &before_[0], nullptr);
    sigaction(SIGTERM, &before_[1], nullptr);
  }

 private:
  std::array<struct sigaction, 2> before_{};
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
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) std::signal(signal, SIG_DFL);
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

}  // namespace

ProgramCrew::ProgramCrew(Options options) : options_(std::move(options)) {
  for (std::size_t i = 0; i < options_.environments.size(); ++i) processes_.push_back({.number = i});
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
  if (well_ > 0 && signals_ == 0 && first_failure_ >= 128)
    return 0;  // those that were lost are why it is here
  return first_failure_.value_or(0);
}

void ProgramCrew::pass_on_signals() {
  const int seen = signals_seen;
  if (kill_at_ns_ != 0 && now_ns() >= kill_at_ns_) {
    for (const Process& process : processes_) {
      if (!process.ended) kill(process.pid, SIGKILL);
    }
  }
  if (seen == signals_) return;
  signals_ = seen;
  if (signals_ > 1) kill_at_ns_ = now_ns() + kGrace_ns;
  for (const Process& process : processes_) {
    if (!process.ended) kill(process.pid, SIGINT);
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
  const bool lost = WIFSIGNALED(status);
  if (lost && signals_seen == 0 && process.restarts < options_.restarts) {
    ++process.restarts;
    options_.say(fmt::format("process {} was ended by signal {}; starting it again", process.number + 1,
                             WTERMSIG(status)));
    if (start(process)) return;
  }
  process.ended = true;
  const int code = lost ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (code == 0) ++well_;
  if (code != 0 && signals_ == 0)
    options_.say(fmt::format("process {} ended with {} {}", process.number + 1, lost ? "signal" : "exit code",
                             lost ? WTERMSIG(status) : code));
  if (code != 0 && (!first_failure_ || (*first_failure_ >= 128 && !lost))) first_failure_ = code;
}

}  // namespace tw::launch
