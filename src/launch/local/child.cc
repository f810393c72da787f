// SPDX-License-Identifier: Apache-2.0
#include "launch/local/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

namespace tw::launch {

namespace {

/// Between fork and exec: async-signal-safe calls alone, because libraries have threads that are not copied.
[[noreturn]] void become(const char* program, char* const* arguments, int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before the line above
  setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execvp(program, arguments);
  constexpr std::string_view kWords = "cannot be started: is it installed?\n";
  (void)!write(STDERR_FILENO, program, std::strlen(program));
  (void)!write(STDERR_FILENO, ": ", 2);
  (void)!write(STDERR_FILENO, kWords.data(), kWords.size());
  _exit(127);
}

}  // namespace

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe"); }

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
  return start_program("/proc/self/exe", arguments,
                       output_path);  // this very build, replaced meanwhile or not
}

Result<Child> Child::start(const std::vector<std::string>& words, const std::string& output_path) {
  return start_program(words.front(), words, output_path);
}

Result<Child> Child::start_program(const std::string& program, const std::vector<std::string>& words,
                                   const std::string& output_path) {
  const int output = open(output_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (output < 0) return Error{fmt::format("cannot write {}: {}", output_path, std::strerror(errno))};
  std::vector<std::string> texts = words;
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) become(program.c_str(), pointers.data(), output, parent);
  const int cause = errno;
  close(output);
  if (pid < 0) return Error{fmt::format("cannot start another process: {}", std::strerror(cause))};
  return Child(pid);
}

Child::~Child() {
  if (pid_ < 0 || ending()) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Child::send_signal(int signal) const {
  if (!ending_) kill(pid_, signal);
}

std::optional<int> Child::ending() {
  int status = 0;
  if (!ending_ && waitpid(pid_, &status, WNOHANG) == pid_)
    ending_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ending_;
}

}  // namespace tw::launch
