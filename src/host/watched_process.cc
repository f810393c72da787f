// SPDX-License-Identifier: Apache-2.0
#include "host/watched_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text/number.h"
#include "base/text/split.h"
#include "base/text/text_file.h"

namespace tw::host {
namespace {

constexpr Duration kLookForProcessEvery = std::chrono::seconds(1);

/// What /proc/PID/stat says of a process.
struct ProcessStat {
  char state = 0;
  std::uint64_t started = 0;  ///< in ticks since the machine's start
};

std::optional<ProcessStat> stat_of(pid_t process) {
  constexpr int kFieldsBetween = 18;  // state is the third field, its start the 22nd
  const auto text = read_text_file(fmt::format("/proc/{}/stat", process));
  const std::size_t name_end = text ? text.value().rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.value().substr(name_end + 1));
  ProcessStat found;
  std::string skipped;
  fields >> found.state;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  if (!(fields >> found.started)) return std::nullopt;
  return found;
}

/// Digits of "pid:[4026531836]"; empty: not known.
std::string pid_namespace() {
  std::error_code error;
  const std::string link = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  const std::size_t open = link.find('['), close = link.find(']');
  if (error || open == std::string::npos || close == std::string::npos || close < open) return "";
  return link.substr(open + 1, close - open - 1);
}

/// Its number may be another process's meanwhile. Where /proc hides it, as one of another user, its number
/// has to do.
bool runs_still(pid_t process, std::uint64_t started) {
  const auto found = stat_of(process);
  if (!found) return kill(process, 0) == 0 || errno != ESRCH;
  return found->started == started && found->state != 'Z' && found->state != 'X';
}

}  // namespace

std::string name_of_this_process() {
  const pid_t self = getpid();
  const auto found = stat_of(self);
  const std::string space = pid_namespace();
  if (!found || space.empty()) return std::to_string(self);
  return fmt::format("{}:{}:{}", self, found->started, space);
}

WatchedProcess::WatchedProcess(const std::string& name) {
  const std::vector<std::string> parts = split(name, ':');
  if (parts.size() != 3 || parts[2].empty() || parts[2] != pid_namespace()) return;
  const auto number = parse_number<pid_t>(parts[0]);
  const auto started = parse_number<std::uint64_t>(parts[1]);
  if (!number || *number <= 0 || !started) return;
  id_ = *number;
  started_ = *started;
}

std::optional<pid_t> WatchedProcess::take_end(Instant now) {
  if (!id_ || now < next_look_) return std::nullopt;
  next_look_ = now + kLookForProcessEvery;
  if (runs_still(*id_, started_)) return std::nullopt;
  return std::exchange(id_, std::nullopt);
}

}  // namespace tw::host
