// SPDX-License-Identifier: Apache-2.0
#include "launch/local/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string_view>

#include "base/cause_text.h"

namespace tw::launch {

namespace {

/// A program to start.
struct ChildStart {
  std::string program;
  std::vector<std::string> words;  ///< argv, the name of the program first
  std::vector<Variable> environment{};
  int input = -1;  ///< -1: that of this process
  int output = -1;
};

/// All signals of this thread, which nothing interrupts meanwhile.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }

  ~HeldSignals() { let_go(); }

  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  void let_go() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

/// As exec does it: a handler of this program would swallow what comes to the child before that.
void forget_handlers() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};

    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
  }
  // What is ignored stays so, as SIGXFSZ: a file that may not grow (ulimit -f) is a failed write, and
  // training goes on without it. A pipe that nobody reads ends the child.
  std::signal(SIGPIPE, SIG_DFL);
}

/// Between fork and exec: async-signal-safe calls alone, because libraries have threads that are not copied.
[[noreturn]] void become(const ChildStart& start, char* const* arguments, char* const* environment,
                         pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before the line above
  setpgid(0, 0);
  if (start.input >= 0) dup2(start.input, STDIN_FILENO);
  dup2(start.output, STDOUT_FILENO);
  dup2(start.output, STDERR_FILENO);
  execvpe(start.program.c_str(), arguments, environment);
  const std::string_view why = errno == ENOENT   ? "No such file or directory: is it installed?"
                               : errno == EACCES ? "Permission denied: is it executable?"
                                                 : "it is no program of this machine";
  for (const std::string_view part : {std::string_view(start.program),
                                      std::string_view(": cannot be started: "), why, std::string_view("\n")})
    (void)!write(STDERR_FILENO, part.data(), part.size());
  _exit(127);
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// NAME=VALUE of this process's environment and of these, which win.
std::vector<std::string> environment_with(const std::vector<Variable>& more) {
  std::map<std::string, std::string> all;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string_view text = *line;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) all[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : more) all[name] = value;
  std::vector<std::string> lines;
  for (const auto& [name, value] : all) lines.push_back(name + "=" + value);
  return lines;
}

Result<pid_t> start_process(ChildStart start) {
  std::vector<std::string> variables = environment_with(start.environment);
  const std::vector<char*> argv = pointers_to(start.words), envp = pointers_to(variables);
  const pid_t parent = getpid();
  const HeldSignals held;
  const pid_t pid = fork();
  if (pid == 0) {
    forget_handlers();
    held.let_go();
    become(start, argv.data(), envp.data(), parent);
  }
  if (pid > 0) return pid;
  return Error{fmt::format("cannot start another process: {}", cause_text(errno))};
}

}  // namespace

ChildSubreaper::ChildSubreaper() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void ChildSubreaper::reap(const std::function<bool(pid_t)>& own) const {
  siginfo_t end{};
  while (waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid != 0 && !own(end.si_pid)) {
    waitpid(end.si_pid, nullptr, WNOHANG);
    end = {};
  }
}

ChildSubreaper::~ChildSubreaper() { prctl(PR_SET_CHILD_SUBREAPER, 0); }

std::string own_path() {
  std::error_code error;
  std::string path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    throw std::runtime_error(fmt::format(
        "/proc/self/exe: {}; this program finds itself there: mount /proc (mount -t proc proc /proc)",
        cause_text(error)));
  return path;
}

std::string last_words(const std::string& output_path) {
  constexpr std::size_t kMost = 2000;
  std::ifstream file(output_path, std::ios::binary | std::ios::ate);
  const auto size = file ? static_cast<std::size_t>(std::streamoff{file.tellg()}) : 0;
  const std::size_t skipped = size - std::min(size, kMost + 1);
  file.seekg(static_cast<std::streamoff>(skipped));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() > kMost) text = "..." + text.substr(text.size() - kMost);
  return text.empty() ? "it printed nothing" : text;
}

Result<Child> Child::start_self(std::vector<std::string> arguments, const std::string& output_path) {
  arguments.insert(arguments.begin(), "tw");
  return start_quiet("/proc/self/exe", std::move(arguments), output_path);  // replaced meanwhile or not
}

Result<Child> Child::start(const std::vector<std::string>& words, const std::string& output_path) {
  return start_quiet(words.front(), words, output_path);
}

Result<Child> Child::start_quiet(std::string program, std::vector<std::string> words,
                                 const std::string& output_path) {
  const int output = open(output_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (output < 0) return Error{fmt::format("cannot write {}: {}", output_path, cause_text(errno))};
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const auto pid = start_process({std::move(program), std::move(words), {}, nothing, output});
  for (const int file : {nothing, output})
    if (file >= 0) close(file);
  if (!pid) return pid.error();
  return Child(pid.value(), -1);
}

Result<Child> Child::start_piped(const std::vector<std::string>& words,
                                 const std::vector<Variable>& environment) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return Error{fmt::format("cannot make a pipe: {}", cause_text(errno))};
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const auto pid = start_process({words.front(), words, environment, -1, ends[1]});
  close(ends[1]);
  if (!pid) close(ends[0]);
  if (!pid) return pid.error();
  return Child(pid.value(), ends[0]);
}

Child::~Child() {
  if (pid_ >= 0 && !ending()) {
    send_signal_to_all(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (output_ >= 0) close(output_);
}

void Child::send_signal(int signal) const {
  if (!ending_) kill(pid_, signal);
}

/// Its own group is the child's (become); it may not have got there yet.
void Child::send_signal_to_all(int signal) const {
  if (!ending_ && kill(-pid_, signal) != 0) kill(pid_, signal);
}

// While one of them is there, no other group gets the number.
bool Child::send_signal_to_rest(int signal) {
  if (!ending_ || pid_ <= 0 || !has_rest_) return false;
  while (waitpid(-pid_, nullptr, WNOHANG) > 0) continue;
  has_rest_ = kill(-pid_, signal) == 0;
  return has_rest_;
}

std::string Child::take_output() {
  std::string text;
  std::array<char, 4096> buffer{};
  ssize_t got = 0;
  while (output_ >= 0 && (got = read(output_, buffer.data(), buffer.size())) > 0)
    text.append(buffer.data(), static_cast<std::size_t>(got));
  if (got == 0 && output_ >= 0) close(std::exchange(output_, -1));
  return text;
}

std::optional<int> Child::ending() {
  int status = 0;
  if (ending_ || waitpid(pid_, &status, WNOHANG) != pid_) return ending_;
  ended_by_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ending_ = ended_by_ > 0 ? 128 + ended_by_ : WEXITSTATUS(status);
  return ending_;
}

}  // namespace tw::launch
