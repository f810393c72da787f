// SPDX-License-Identifier: Apache-2.0
#include "launch/policy_program.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/cause_text.h"
#include "base/result.h"
#include "plan/output/spot_view.h"

namespace tw::launch {
namespace {

constexpr int kLongestAnswer_ms = 10'000;
constexpr int kGrace_ms = 200;  ///< to end by itself after the last view
constexpr std::size_t kMostBytes = 1 << 16;

/// One limit for several waits, however often a program writes meanwhile.
class Patience {
 public:
  explicit Patience(int whole_ms)
      : end_(std::chrono::steady_clock::now() + std::chrono::milliseconds(whole_ms)) {}

  int left_ms() const {
    const auto left = end_ - std::chrono::steady_clock::now();
    return static_cast<int>(
        std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(left).count()));
  }

 private:
  std::chrono::steady_clock::time_point end_;
};

}  // namespace

Result<PolicyProgram> PolicyProgram::start(const std::string& command) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    return Error{fmt::format("{}: no socket for it: {}", command, cause_text(errno))};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, sockets[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, sockets[1], STDOUT_FILENO);
  posix_spawnattr_t own_group;
  posix_spawnattr_init(&own_group);
  posix_spawnattr_setflags(&own_group, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&own_group, 0);
  std::string shell = "/bin/sh", option = "-c", words = command;
  char* const arguments[] = {shell.data(), option.data(), words.data(), nullptr};
  pid_t pid = -1;
  const int cause = posix_spawn(&pid, shell.c_str(), &files, &own_group, arguments, environ);
  posix_spawnattr_destroy(&own_group);
  posix_spawn_file_actions_destroy(&files);
  close(sockets[1]);
  if (cause == 0) return PolicyProgram(command, sockets[0], pid);
  close(sockets[0]);
  return Error{fmt::format("{}: cannot be started: {}", command, cause_text(cause))};
}

PolicyProgram::PolicyProgram(PolicyProgram&& other) noexcept
    : command_(std::move(other.command_)),
      socket_(std::exchange(other.socket_, -1)),
      pid_(std::exchange(other.pid_, -1)),
      unread_(std::move(other.unread_)),
      trouble_(std::move(other.trouble_)) {}

PolicyProgram::~PolicyProgram() {
  if (pid_ < 0) return;
  shutdown(socket_, SHUT_WR);
  pollfd ended{.fd = socket_, .events = POLLIN, .revents = 0};
  char rest[4096];
  const Patience grace(kGrace_ms);
  for (int left = kGrace_ms;
       left > 0 && poll(&ended, 1, left) > 0 && recv(socket_, rest, sizeof(rest), 0) > 0;
       left = grace.left_ms()) {
  }
  kill(-pid_, SIGKILL);
  close(socket_);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

plan::SpotDecision PolicyProgram::decide(const plan::SpotView& view) {
  if (!trouble_) {
    auto line = ask(to_json_line(view));
    auto decision = line ? read_decision(view, line.value()) : Result<plan::SpotDecision>(line.error());
    if (decision) return std::move(decision).value();
    trouble_ = Error{fmt::format("{}: {}", command_, decision.error().message)};
  }
  return {plan::SpotAction::wait, 0, trouble_->message};
}

std::string PolicyProgram::its_end() const {
  siginfo_t end{};
  const Patience grace(kGrace_ms);
  // It stays a child to be waited for by the destructor.
  while (waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid == 0 &&
         grace.left_ms() > 0)
    poll(nullptr, 0, 1);
  if (end.si_pid == 0) return "";
  return fmt::format(" ({} {})", end.si_code == CLD_EXITED ? "exit code" : "signal", end.si_status);
}

Result<std::string> PolicyProgram::ask(const std::string& line) {
  if (!unread_.empty())
    return Error{"answers before it is asked; expected one line for each line that it reads"};
  const Patience patience(kLongestAnswer_ms);
  for (std::size_t sent = 0; sent < line.size();) {
    pollfd room{.fd = socket_, .events = POLLOUT, .revents = 0};
    if (poll(&room, 1, patience.left_ms()) == 0)
      return Error{"reads nothing for 10 s; expected one line for each line that it reads"};
    const ssize_t more = send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (more < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (more < 0) break;  // it has ended: its last output says why
    sent += static_cast<std::size_t>(more);
  }
  for (;;) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string answer = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return answer;
    }
    pollfd ready{.fd = socket_, .events = POLLIN, .revents = 0};
    const int polled = poll(&ready, 1, patience.left_ms());
    if (polled < 0 && errno == EINTR) continue;
    if (polled == 0) return Error{"no answer within 10 s; expected one line for each line that it reads"};
    char bytes[4096];
    const ssize_t got = recv(socket_, bytes, sizeof(bytes), 0);
    if (got <= 0)
      return Error{
          fmt::format("ended without an answer{}; expected one line for each line that it reads", its_end())};
    unread_.append(bytes, static_cast<std::size_t>(got));
    if (unread_.size() > kMostBytes) return Error{"a line of more than 64 KiB; expected one JSON object"};
  }
}

}  // namespace tw::launch
