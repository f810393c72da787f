// SPDX-License-Identifier: Apache-2.0
#include "launch/command_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <iterator>
#include <map>
#include <optional>
#include <semaphore>
#include <thread>

#include "base/cause_text.h"
#include "base/result.h"
#include "base/text/split.h"
#include "base/text/text.h"
#include "host/system/calendar.h"
#include "host/system/environment.h"
#include "host/system/own_folder.h"
#include "launch/held_signals.h"
#include "launch/run_store.h"

namespace tw::launch {
namespace {

constexpr int kMostAtOnce = 16;
/// Exit code of a program that is not there, as a shell has it.
constexpr int kNoProgram = 127;
/// Exit code of a command that took too long, as timeout(1) has it.
constexpr int kLateExit = 124;
/// Exit code of a command that somebody else has waited for: none that is fine.
constexpr int kLostExit = -1;
/// Between SIGTERM and SIGKILL for the process group of a command.
constexpr Duration kMercy = std::chrono::seconds(5);
constexpr Duration kFirstNap = std::chrono::milliseconds(1);
constexpr Duration kLongestNap = std::chrono::milliseconds(50);

/// A descriptor, closed with this object.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }

  int number() const { return number_; }

 private:
  int number_;
};

bool write_whole(int to, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(to, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return lseek(to, 0, SEEK_SET) == 0;
}

std::string text_of(int from) {
  std::string text;
  char buffer[1 << 16];
  lseek(from, 0, SEEK_SET);
  for (ssize_t got = 0; (got = read(from, buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

int open_input(const Command& command) {
  if (!command.input_file.empty()) return open(command.input_file.c_str(), O_RDONLY | O_CLOEXEC);
  const int input = memfd_create("input", MFD_CLOEXEC);
  return input >= 0 && write_whole(input, command.input) ? input : -1;
}

/// Waits for a process that leads a group of its own. Ends the group when it takes too long, or this program
/// is to end.
class Waiting {
 public:
  enum class Cause { itself, late, interrupted, lost };

  Waiting(pid_t pid, Duration limit) : pid_(pid), limit_(limit) {}

  Cause cause() const { return cause_; }

  /// Its exit code.
  int wait() {
    for (Duration nap = kFirstNap; !has_ended(); nap = std::min(2 * nap, kLongestNap)) {
      look();
      std::this_thread::sleep_for(nap);
    }
    if (cause_ == Cause::lost) return kLostExit;
    if (cause_ != Cause::itself) end_the_rest();
    if (cause_ == Cause::late) return kLateExit;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool has_ended() {
    const pid_t ended = waitpid(pid_, &status_, WNOHANG);
    if (ended >= 0) return ended == pid_;
    if (errno == EINTR) return false;
    cause_ = Cause::lost;
    return true;
  }

  void look() {
    if (cause_ != Cause::itself) {
      if (!is_patient()) kill(-pid_, SIGKILL);
      return;
    }
    const bool is_late = limit_ > Duration{} && Clock::now() - begun_ >= limit_;
    if (!HeldEndSignals::came() && !is_late) return;
    cause_ = is_late ? Cause::late : Cause::interrupted;
    told_ = Clock::now();
    kill(-pid_, SIGTERM);
  }

  /// The first of the group has ended: a shell goes before what it started.
  void end_the_rest() const {
    while (kill(-pid_, 0) == 0 && is_patient()) std::this_thread::sleep_for(kLongestNap);
    kill(-pid_, SIGKILL);
  }

  bool is_patient() const { return Clock::now() - told_ < kMercy && !HeldEndSignals::insist(); }

  pid_t pid_;
  Duration limit_;
  Clock::time_point begun_ = Clock::now(), told_{};
  Cause cause_ = Cause::itself;  ///< of its end
  int status_ = 0;               ///< as waitpid gives it
};

/// 0, or why it could not be started.
int spawn(const Command& command, int input, int output, int errors, pid_t& pid) {
  std::vector<std::string> words = command.words;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
  // Ctrl-C at the terminal is for this program, which decides what becomes of its commands.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int cause = posix_spawnp(&pid, words.front().c_str(), &files, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return cause;
}

std::string missing_text(const std::string& program) {
  return fmt::format("{}: no such program on this machine: is it installed?", program);
}

/// Where posix_spawnp looks, too.
bool finds_program(const std::string& program) {
  if (program.find('/') != std::string::npos) return access(program.c_str(), F_OK) == 0;
  const std::string path = host::environment_value("PATH");
  return std::ranges::any_of(split(path.empty() ? "/bin:/usr/bin" : path, ':'), [&](const auto& folder) {
    return access(((folder.empty() ? "." : folder) + "/" + program).c_str(), F_OK) == 0;
  });
}

/// "p2: ", where a command is about a peer.
std::string whose(const Command& command) {
  return command.peer == 0 ? "" : short_name({.number = command.peer}) + ": ";
}

std::string client_of(const Command& command) {
  return command.client.empty() ? command.words.front() : command.client;
}

std::optional<Error> failure_of(const Output& output) {
  const Command& command = output.command;
  if (std::ranges::find(command.fine, output.exit_code) != command.fine.end()) return std::nullopt;
  std::string said(last_line(output.errors));
  if (said.empty()) said = last_line(output.text);
  if (output.is_late) return Error{whose(command) + said};
  if (command.says_why && !said.empty()) return Error{said};
  return Error{fmt::format("{}{}: exit code {}{}{}", whose(command),
                           command.client.empty() ? to_line(command) : command.client, output.exit_code,
                           said.empty() ? "" : ": ", said)};
}

/// A late one says so, and what it said last.
std::string late_text(const Output& output) {
  const std::string_view said = last_line(output.errors);
  return fmt::format("{} did not answer within {:g} s{}{}", client_of(output.command),
                     to_seconds(output.command.limit), said.empty() ? "" : ": ", said);
}

/// Commands that follow each other, until one fails that others need.
struct Chain {
  std::uint32_t peer = 0;
  std::vector<Output> outputs;
  std::vector<Batch::Failure> failures;
  bool is_cut = false;
};

Chain run_chain(const std::vector<Command>& commands) {
  Chain chain{.peer = commands.front().peer};
  for (const Command& command : commands) {
    auto output = run_command(command);
    if (output && output.value().is_late && command.again_when_late) output = run_command(command);
    std::optional<Error> failure;
    Batch::Why why = Batch::Why::failed;
    if (!output) {
      failure = output.error();
      if (HeldEndSignals::came()) why = Batch::Why::interrupted;
    } else {
      failure = failure_of(output.value());
      if (output.value().is_late) why = Batch::Why::late;
      chain.outputs.push_back(std::move(output).value());
    }
    if (!failure) continue;
    chain.failures.push_back({chain.peer, failure->message, why});
    chain.is_cut = !command.others_go_on || why == Batch::Why::interrupted;
    if (chain.is_cut) break;
  }
  return chain;
}

/// Commands about peers: a chain for each, at most kMostAtOnce of them at once.
void run_peers(const std::vector<Command>& commands, Batch& batch) {
  std::map<std::uint32_t, std::vector<Command>> by_peer;
  for (const Command& command : commands) by_peer[command.peer].push_back(command);
  std::counting_semaphore<> slots(kMostAtOnce);
  std::vector<std::future<Chain>> chains;
  for (const auto& [peer, own] : by_peer)
    chains.push_back(std::async(std::launch::async, [&slots, &own = own] {
      slots.acquire();
      Chain chain = run_chain(own);
      slots.release();
      return chain;
    }));
  for (std::future<Chain>& future : chains) {
    Chain chain = future.get();
    for (Output& output : chain.outputs) batch.outputs.push_back(std::move(output));
    std::ranges::move(chain.failures, std::back_inserter(batch.failures));
  }
}

}  // namespace

std::string to_line(const Command& command) {
  std::string line = shell_line(command.words);
  if (!command.input_file.empty()) line += " <" + shell_word(command.input_file);
  if (!command.output_file.empty()) line += " >" + shell_word(command.output_file);
  return line;
}

std::string missing_program(const std::vector<Command>& commands) {
  for (const Command& command : commands)
    if (!finds_program(command.words.front())) return missing_text(command.words.front());
  return "";
}

Result<Output> run_command(const Command& command) {
  const Error interrupted{fmt::format("{}{}: interrupted", whose(command), client_of(command))};
  if (HeldEndSignals::came()) return interrupted;
  if (!command.own_folder.empty()) TW_TRY(host::take_own_folder(command.own_folder));
  const Descriptor input(open_input(command));
  if (input.number() < 0)
    return Error{fmt::format("{}: its input cannot be read: {}", to_line(command), cause_text(errno))};
  const Descriptor output(memfd_create("output", MFD_CLOEXEC)), errors(memfd_create("errors", MFD_CLOEXEC));
  if (output.number() < 0 || errors.number() < 0)
    return Error{fmt::format("{}: no memory for its output: {}", to_line(command), cause_text(errno))};
  pid_t pid = -1;
  const int cause = spawn(command, input.number(), output.number(), errors.number(), pid);
  if (cause == ENOENT) {
    const std::string why = missing_text(command.words.front());
    if (std::ranges::find(command.fine, kNoProgram) == command.fine.end()) return Error{why};
    return Output{command, kNoProgram, "", why};
  }
  if (cause != 0)
    return Error{fmt::format("{}: cannot be started: {}", command.words.front(), cause_text(cause))};
  Waiting waiting(pid, command.limit);
  const int exit_code = waiting.wait();
  if (waiting.cause() == Waiting::Cause::interrupted) return interrupted;
  if (waiting.cause() == Waiting::Cause::lost)
    return Error{fmt::format("{}{}: its exit code is lost: this process does not get those of its children",
                             whose(command), client_of(command))};
  Output result{command, exit_code, text_of(output.number()), text_of(errors.number()), host::now_unix_s()};
  result.is_late = waiting.cause() == Waiting::Cause::late;
  if (result.is_late) result.errors = late_text(result);
  if (!command.output_file.empty() && exit_code == 0)
    TW_TRY(write_with_folder(command.output_file, result.text, 0600));
  return result;
}

Batch run_all(const std::vector<Command>& commands) {
  const HeldEndSignals held;
  Batch batch;
  for (std::size_t at = 0; at < commands.size();) {
    const bool about_run = commands[at].peer == 0;
    std::size_t end = at + 1;
    while (end < commands.size() && (commands[end].peer == 0) == about_run) ++end;
    const std::vector<Command> part(commands.begin() + static_cast<std::ptrdiff_t>(at),
                                    commands.begin() + static_cast<std::ptrdiff_t>(end));
    at = end;
    if (!about_run) {
      run_peers(part, batch);
      continue;
    }
    Chain chain = run_chain(part);
    for (Output& output : chain.outputs) batch.outputs.push_back(std::move(output));
    std::ranges::move(chain.failures, std::back_inserter(batch.failures));
    if (chain.is_cut) return batch;
  }
  return batch;
}

}  // namespace tw::launch
