// SPDX-License-Identifier: Apache-2.0
#include "launch/command_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <map>
#include <optional>
#include <semaphore>

#include "base/result.h"
#include "host/system/own_folder.h"
#include "launch/run_store.h"

namespace tw::launch {
namespace {

constexpr int kMostAtOnce = 16;
/// Exit code of a program that is not there, as a shell has it.
constexpr int kNoProgram = 127;

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

int exit_code_of(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

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

std::string last_line(const std::string& text) {
  std::size_t end = text.find_last_not_of(" \r\n");
  if (end == std::string::npos) return "";
  const std::size_t begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? -1 : begin));
}

std::optional<Error> failure_of(const Output& output) {
  if (std::ranges::find(output.command.fine, output.exit_code) != output.command.fine.end())
    return std::nullopt;
  const std::string said = last_line(output.errors.empty() ? output.text : output.errors);
  if (output.command.says_why && !said.empty()) return Error{said};
  return Error{fmt::format("{}: exit code {}{}{}", to_line(output.command), output.exit_code,
                           said.empty() ? "" : ": ", said)};
}

/// Commands that follow each other, until one fails.
struct Chain {
  std::uint32_t peer = 0;
  std::vector<Output> outputs;
  std::optional<Error> failure;
};

Chain run_chain(const std::vector<Command>& commands) {
  Chain chain{.peer = commands.front().peer};
  for (const Command& command : commands) {
    auto output = run_command(command);
    if (!output) {
      chain.failure = output.error();
    } else {
      chain.failure = failure_of(output.value());
      chain.outputs.push_back(std::move(output).value());
    }
    if (chain.failure) break;
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
    if (chain.failure) batch.failures.push_back({chain.peer, chain.failure->message});
  }
}

}  // namespace

std::string to_line(const Command& command) {
  std::string line = shell_line(command.words);
  if (!command.input_file.empty()) line += " <" + shell_word(command.input_file);
  if (!command.output_file.empty()) line += " >" + shell_word(command.output_file);
  return line;
}

Result<Output> run_command(const Command& command) {
  if (!command.own_folder.empty()) TW_TRY(host::take_own_folder(command.own_folder));
  const Descriptor input(open_input(command));
  if (input.number() < 0)
    return Error{fmt::format("{}: its input cannot be read: {}", to_line(command), std::strerror(errno))};
  const Descriptor output(memfd_create("output", MFD_CLOEXEC)), errors(memfd_create("errors", MFD_CLOEXEC));
  if (output.number() < 0 || errors.number() < 0)
    return Error{fmt::format("{}: no memory for its output: {}", to_line(command), std::strerror(errno))};
  pid_t pid = -1;
  const int cause = spawn(command, input.number(), output.number(), errors.number(), pid);
  if (cause == ENOENT) {
    const std::string why =
        fmt::format("{}: no such program on this machine: is it installed?", command.words.front());
    if (std::ranges::find(command.fine, kNoProgram) == command.fine.end()) return Error{why};
    return Output{command, kNoProgram, "", why};
  }
  if (cause != 0)
    return Error{fmt::format("{}: cannot be started: {}", command.words.front(), std::strerror(cause))};
  const int exit_code = exit_code_of(pid);
  Output result{command, exit_code, text_of(output.number()), text_of(errors.number())};
  if (!command.output_file.empty() && exit_code == 0)
    TW_TRY(write_with_folder(command.output_file, result.text, 0600));
  return result;
}

Batch run_all(const std::vector<Command>& commands) {
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
    if (!chain.failure) continue;
    batch.failures.push_back({0, chain.failure->message});
    return batch;
  }
  return batch;
}

}  // namespace tw::launch
