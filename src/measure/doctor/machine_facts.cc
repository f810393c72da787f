// SPDX-License-Identifier: Apache-2.0
#include "measure/doctor/machine_facts.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <thread>

#include "base/result.h"
#include "base/text/number.h"
#include "host/files_disk.h"
#include "host/system/cpu_time.h"

namespace tw::measure {
namespace {

using namespace std::chrono_literals;

constexpr auto kBusy = 500ms;
constexpr std::size_t kMostPieces = 1 << 20;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// "name value" lines, as in cpu.stat, /proc/meminfo and /proc/stat.
std::map<std::string, double> table_of(const std::string& path) {
  std::istringstream text(text_of(path));
  std::map<std::string, double> table;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string name;
    double value = 0;
    if (words >> name >> value) table[name] = value;
  }
  return table;
}

/// The cgroup's folder of a controller: version 2, or version 1 where that is mounted.
std::string cgroup_file(const std::string& controller, const std::string& v2, const std::string& v1) {
  std::istringstream lines(text_of("/proc/self/cgroup"));
  const std::string root = "/sys/fs/cgroup";
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    const bool is_v2 = names.empty();
    if (!is_v2 && names.find(controller) == std::string::npos) continue;
    const std::string base = is_v2 ? root : root + "/" + controller;
    for (const std::string& file : {base + path + "/" + (is_v2 ? v2 : v1), base + "/" + (is_v2 ? v2 : v1)})
      if (std::filesystem::exists(file)) return file;
  }
  return "";
}

std::optional<double> number_in_file(const std::string& path) {
  std::istringstream text(text_of(path));
  std::string word;
  if (!(text >> word)) return std::nullopt;
  return parse_number<double>(word);
}

std::optional<double> cpu_quota() {
  const std::string file = cgroup_file("cpu", "cpu.max", "cpu.cfs_quota_us");
  std::istringstream text(text_of(file));
  std::string quota;
  double period = 100'000;
  if (!(text >> quota)) return std::nullopt;
  if (!(text >> period)) {
    const std::string folder = std::filesystem::path(file).parent_path().string();
    period = number_in_file(folder + "/cpu.cfs_period_us").value_or(period);
  }
  const auto number = parse_number<double>(quota);
  return number && *number > 0 && period > 0 ? std::optional(*number / period) : std::nullopt;
}

/// What /proc/stat says of all cores together: steal, and all.
std::pair<double, double> cpu_ticks() {
  std::istringstream text(text_of("/proc/stat"));
  std::string name;
  text >> name;
  double all = 0, steal = 0, ticks = 0;
  for (int field = 0; field < 8 && text >> ticks; ++field) {
    all += ticks;
    if (field == 7) steal = ticks;
  }
  return {steal, all};
}

std::optional<double> best_frequency(unsigned cores) {
  std::optional<double> best;
  for (unsigned core = 0; core < cores; ++core) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/", core);
    const auto now = number_in_file(folder + "scaling_cur_freq");
    const auto most = number_in_file(folder + "cpuinfo_max_freq");
    if (now && most && *most > 0) best = std::max(best.value_or(0), *now / *most);
  }
  return best;
}

unsigned usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0)
    return std::max(1U, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

void be_busy(unsigned threads) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::jthread> busy;
  for (unsigned i = 0; i < threads; ++i)
    busy.emplace_back([begin] {
      volatile double sum = 0;
      while (std::chrono::steady_clock::now() - begin < kBusy)
        for (int step = 0; step < 10'000; ++step) sum = sum + static_cast<double>(step);
    });
}

/// By the PCI bus; drivers and containers change nothing of it.
bool has_card_of_nvidia() {
  std::error_code none;
  for (const auto& device : std::filesystem::directory_iterator("/sys/bus/pci/devices", none)) {
    const std::string vendor = text_of(device.path() / "vendor"), kind = text_of(device.path() / "class");
    if (vendor.starts_with("0x10de") && kind.starts_with("0x03")) return true;
  }
  return false;
}

}  // namespace

CpuFacts measure_cpu() {
  CpuFacts facts;
  const unsigned cores = usable_cores();
  facts.threads = cores;
  facts.quota = cpu_quota();
  const std::string stat = cgroup_file("cpu", "cpu.stat", "cpu.stat");
  auto before = table_of(stat);
  const auto [steal_before, all_before] = cpu_ticks();
  const double cpu_before = host::cpu_seconds();
  const auto begin = std::chrono::steady_clock::now();
  be_busy(cores);
  facts.got = (host::cpu_seconds() - cpu_before) / seconds_since(begin);
  facts.frequency = best_frequency(cores);
  auto after = table_of(stat);
  const auto [steal, all] = cpu_ticks();
  const double periods = after["nr_periods"] - before["nr_periods"];
  if (periods > 0) facts.throttled = (after["nr_throttled"] - before["nr_throttled"]) / periods;
  if (all > all_before) facts.steal = (steal - steal_before) / (all - all_before);
  return facts;
}

MemoryFacts measure_memory() {
  MemoryFacts facts;
  auto info = table_of("/proc/meminfo");
  facts.total = static_cast<std::uint64_t>(info["MemTotal:"] * 1024);
  facts.available = static_cast<std::uint64_t>(info["MemAvailable:"] * 1024);
  rlimit mapped{};
  if (::getrlimit(RLIMIT_AS, &mapped) == 0 && mapped.rlim_cur != RLIM_INFINITY)
    facts.mapped_limit = mapped.rlim_cur;
  const auto limit = number_in_file(cgroup_file("memory", "memory.max", "memory.limit_in_bytes"));
  if (!limit || *limit >= static_cast<double>(facts.total)) return facts;  // version 1 says 2^63 for none
  facts.limit = static_cast<std::uint64_t>(*limit);
  const auto used = number_in_file(cgroup_file("memory", "memory.current", "memory.usage_in_bytes"));
  facts.used = static_cast<std::uint64_t>(used.value_or(0));
  return facts;
}

FileLimit open_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  return {limit.rlim_cur, limit.rlim_max};
}

ClockFacts ask_clock() {
  timex clock{};
  const int state = ::adjtimex(&clock);
  return {.synchronised = state >= 0 && state != TIME_ERROR && (clock.status & STA_UNSYNC) == 0,
          .error_s = static_cast<double>(clock.maxerror) * 1e-6};
}

FoldersOnTrial::FoldersOnTrial(const std::string& path) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(path, error).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  for (; folder.has_relative_path() && !std::filesystem::exists(folder, error); folder = folder.parent_path())
    missing_.push_back(folder.string());
}

FoldersOnTrial::~FoldersOnTrial() {
  for (const std::string& folder : missing_)
    if (::rmdir(folder.c_str()) != 0) return;  // something stands there that is not the trial's
}

Result<DiskFacts> measure_disk(const std::string& folder, std::uint64_t bytes) {
  const FoldersOnTrial made(folder);
  host::DiskFiles disk;
  TW_TRY(disk.make_folder(folder));
  const std::string path = fmt::format("{}/tw-doctor-{}", folder, ::getpid());
  const std::vector<std::byte> piece(1 << 20, std::byte{0x5a});
  const std::size_t pieces = std::clamp<std::size_t>(bytes / piece.size(), 1, kMostPieces);
  const std::vector<std::span<const std::byte>> parts(pieces, piece);
  const auto begin = std::chrono::steady_clock::now();
  Status done = disk.write(path + ".new", parts);
  if (done) done = disk.rename(path + ".new", path);
  const double took_s = seconds_since(begin);
  (void)disk.remove(path);
  (void)disk.remove(path + ".new");
  if (!done) return done.error();

  struct statvfs about {};

  DiskFacts facts{.bytes = pieces * piece.size()};
  facts.bytes_per_s = static_cast<double>(facts.bytes) / std::max(took_s, 1e-6);
  if (::statvfs(folder.c_str(), &about) == 0) facts.free = std::uint64_t{about.f_bavail} * about.f_frsize;
  return facts;
}

GpuFacts look_for_gpus() {
  GpuFacts facts{.built_in = has_card_of_nvidia()};
  auto gpus = host::list_gpus();
  if (gpus)
    facts.gpus = std::move(gpus).value();
  else
    facts.failure = gpus.error().message;
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES")) facts.visible = visible;
  return facts;
}

std::vector<std::string> interface_addresses() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  std::vector<std::string> addresses;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const bool usable =
        one->ifa_addr != nullptr && (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!usable) continue;
    char text[INET6_ADDRSTRLEN] = "";
    if (one->ifa_addr->sa_family == AF_INET)
      ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text,
                  sizeof(text));
    if (one->ifa_addr->sa_family == AF_INET6)
      ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr, text,
                  sizeof(text));
    const std::string address = text;
    if (!address.empty() && !address.starts_with("fe80:")) addresses.push_back(address);
  }
  ::freeifaddrs(all);
  return addresses;
}

}  // namespace tw::measure
