// SPDX-License-Identifier: Apache-2.0
#include "wan/netns.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "base/text/number.h"

namespace tw::wan {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

const std::string kFolder = "/run/netns";
constexpr auto kGrace = 1s;

std::string path_of(const std::string& name) { return kFolder + "/" + name; }

/// `ip netns` needs the folder to be a mount point whose mounts other mount namespaces see.
Status prepare_folder() {
  std::error_code failed;
  fs::create_directories(kFolder, failed);
  if (mount("", kFolder.c_str(), "none", MS_SHARED | MS_REC, nullptr) == 0) return tw::Unit{};
  if (mount(kFolder.c_str(), kFolder.c_str(), "none", MS_BIND | MS_REC, nullptr) != 0 ||
      mount("", kFolder.c_str(), "none", MS_SHARED | MS_REC, nullptr) != 0) {
    return os_error(kFolder);
  }
  return tw::Unit{};
}

void signal_all(const std::vector<pid_t>& processes, int signal) {
  for (const pid_t process : processes) kill(process, signal);
}

/// Waits until the namespaces have no process; what is left then.
std::vector<pid_t> wait_for_end(const std::vector<std::string>& names) {
  const auto end = std::chrono::steady_clock::now() + kGrace;
  std::vector<pid_t> left = processes_in(names);
  while (!left.empty() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(5ms);
    left = processes_in(names);
  }
  return left;
}

using Inode = std::pair<dev_t, ino_t>;

std::optional<Inode> inode_of(const std::string& path) {
  struct stat its {};

  if (stat(path.c_str(), &its) != 0) return std::nullopt;
  return Inode{its.st_dev, its.st_ino};
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

Error os_error(const std::string& what) { return Error{fmt::format("{}: {}", what, std::strerror(errno))}; }

Result<Fd> current_netns() {
  Fd netns(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!netns.valid()) return os_error("/proc/thread-self/ns/net");
  return netns;
}

Status create_netns(const std::string& name) {
  if (auto ready = prepare_folder(); !ready) return ready;
  const Fd file(open(path_of(name).c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  if (!file.valid()) return os_error(path_of(name));
  auto outside = current_netns();
  if (!outside) return outside.error();
  if (unshare(CLONE_NEWNET) != 0) return os_error("a network namespace cannot be made (are you root?)");
  const int mounted = mount("/proc/thread-self/ns/net", path_of(name).c_str(), "none", MS_BIND, nullptr);
  const Error failure = os_error(path_of(name));
  if (auto back = enter_netns(outside.value()); !back) return back;
  if (mounted != 0) return failure;
  return tw::Unit{};
}

Result<Fd> open_netns(const std::string& name) {
  Fd netns(open(path_of(name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!netns.valid()) return os_error(path_of(name));
  return netns;
}

Status enter_netns(const Fd& netns) {
  if (setns(netns.get(), CLONE_NEWNET) != 0) return os_error("setns");
  return tw::Unit{};
}

std::vector<std::string> netns_names(const std::string& prefix) {
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(kFolder, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<pid_t> processes_in(const std::vector<std::string>& names) {
  std::set<Inode> wanted;
  for (const std::string& name : names)
    if (const auto inode = inode_of(path_of(name))) wanted.insert(*inode);
  std::vector<pid_t> processes;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator("/proc", failed)) {
    const auto process = parse_number<pid_t>(entry.path().filename().string());
    if (!process || *process == getpid()) continue;
    const auto inode = inode_of(entry.path().string() + "/ns/net");
    if (inode && wanted.contains(*inode)) processes.push_back(*process);
  }
  return processes;
}

Status remove_netns(const std::vector<std::string>& names) {
  signal_all(processes_in(names), SIGTERM);
  signal_all(processes_in(names), SIGCONT);  // a stopped process ends only when it goes on
  const auto stubborn = wait_for_end(names);
  signal_all(stubborn, SIGKILL);
  if (!stubborn.empty()) wait_for_end(names);
  for (const std::string& name : names) {
    umount2(path_of(name).c_str(), MNT_DETACH);
    if (unlink(path_of(name).c_str()) != 0 && errno != ENOENT) return os_error(path_of(name));
  }
  return tw::Unit{};
}

Status write_sysctl(const std::string& key, const std::string& value) {
  std::ofstream file("/proc/sys/net/" + key);
  file << value << std::flush;
  if (!file) return os_error(fmt::format("/proc/sys/net/{} = {}", key, value));
  return tw::Unit{};
}

}  // namespace tw::wan
