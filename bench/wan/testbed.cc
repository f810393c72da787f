// SPDX-License-Identifier: Apache-2.0
#include "wan/testbed.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>

#include "wan/nic.h"

namespace tw::wan {
namespace {

namespace fs = std::filesystem;

const std::string kRunFolder = "/run/tw-wan";
const std::string kNetnsPrefix = "tw-wan.";

bool is_file_at(const Fd& file, const std::string& path) {
  struct stat held {
  }, there{};

  return fstat(file.get(), &held) == 0 && stat(path.c_str(), &there) == 0 && held.st_ino == there.st_ino;
}

std::set<std::string> all_testbeds() {
  std::set<std::string> testbeds;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(kRunFolder, failed))
    testbeds.insert(entry.path().filename().string());
  for (const std::string& netns : netns_names(kNetnsPrefix)) {
    const std::size_t end = netns.find('.', kNetnsPrefix.size());
    testbeds.insert(netns.substr(kNetnsPrefix.size(), end - kNetnsPrefix.size()));
  }
  return testbeds;
}

/// A namespace may choose among what the host allows to all; the host's own choice is left alone.
Status allow_congestion(const std::string& wanted) {
  const std::string key = "ipv4/tcp_allowed_congestion_control";
  std::ifstream file("/proc/sys/net/" + key);
  std::string allowed, name;
  while (file >> name) {
    if (name == wanted) return tw::Unit{};
    allowed += name + " ";
  }
  return write_sysctl(key, allowed + wanted);
}

Status set_limits(const Topology& topology, const Site& site) {
  const auto limit = [](const char* key, int start, double most) {
    const auto bytes = static_cast<long>(most);
    return write_sysctl(key, fmt::format("4096 {} {}", std::min<long>(start, bytes), bytes));
  };
  if (auto done = limit("ipv4/tcp_rmem", 131072, site.tcp.receive_bytes); !done) return done;
  if (auto done = limit("ipv4/tcp_wmem", 16384, site.tcp.send_bytes); !done) return done;
  // Slow streams over long ways would send bursts of two packets, which cost the box as much as large ones.
  if (auto done = write_sysctl("ipv4/tcp_min_tso_segs", "8"); !done) return done;
  // A connection must not start with what an earlier one has learned: runs that are compared would not be
  // equal.
  if (auto done = write_sysctl("ipv4/tcp_no_metrics_save", "1"); !done) return done;
  return write_sysctl("ipv4/tcp_congestion_control", topology.congestion);
}

Result<Tun> build_host(const Topology& topology, const Host& host, const TestbedPlace& place) {
  if (auto made = create_netns(place.netns(host)); !made) return made.error();
  const auto inside = open_netns(place.netns(host));
  if (!inside) return inside.error();
  if (auto entered = enter_netns(inside.value()); !entered) return entered.error();
  auto tun = Tun::open({.address = host.address, .mtu = topology.mtu, .offloads = !topology.lossy()});
  if (!tun) return tun;
  const Site& site = topology.sites[host.site];
  if (auto limited = set_limits(topology, site); !limited) return limited.error();
  return tun;
}

/// Names for `exec`: a site's name is its first host's.
Status write_hosts_file(const Topology& topology, const TestbedPlace& place) {
  std::ofstream file(place.hosts_file());
  file << "127.0.0.1 localhost\n";
  for (const Host& host : topology.hosts()) {
    const std::string& site = topology.sites[host.site].name;
    const bool first_of_many = host.number == 1 && host.name != site;
    file << host.address << ' ' << host.name << (first_of_many ? " " + site : "") << '\n';
  }
  file.flush();
  if (!file) return os_error(place.hosts_file());
  return tw::Unit{};
}

}  // namespace

Result<std::optional<Fd>> lock_testbed(const TestbedPlace& place) {
  for (;;) {
    std::error_code failed;
    fs::create_directories(place.folder(), failed);
    Fd file(open(place.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!file.valid()) return os_error(place.lock() + " (are you root?)");
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return os_error(place.lock());
      return std::optional<Fd>{};
    }
    // The former holder may have removed the file: then the lock is void.
    if (is_file_at(file, place.lock())) return std::optional<Fd>(std::move(file));
  }
}

Status remove_testbed(const TestbedPlace& place) {
  if (auto removed = remove_netns(netns_names(place.netns_prefix())); !removed) return removed;
  std::error_code failed;
  fs::remove_all(place.folder(), failed);
  if (failed) return Error{fmt::format("{}: {}", place.folder(), failed.message())};
  return tw::Unit{};
}

Result<std::vector<std::string>> remove_dead_testbeds() {
  std::vector<std::string> removed;
  for (const std::string& testbed : all_testbeds()) {
    const TestbedPlace place{testbed};
    const auto lock = lock_testbed(place);
    if (!lock) return lock.error();
    if (!lock.value()) continue;
    if (auto done = remove_testbed(place); !done) return done.error();
    removed.push_back(testbed);
  }
  return removed;
}

Result<Testbed> build_testbed(const Topology& topology, const TestbedPlace& place) {
  const auto outside = current_netns();
  if (!outside) return outside.error();
  if (auto allowed = allow_congestion(topology.congestion); !allowed) return allowed.error();
  Testbed testbed{.tuns = {}, .kernel_nics = true};
  for (const Host& host : topology.hosts()) {
    auto tun = build_host(topology, host, place);
    const double rate = topology.sites[host.site].nic_up_bit_s;
    // Kernels without tbf are fine: the box has queues of its own.
    if (tun && rate != kUnlimited && !limit_nic(rate)) testbed.kernel_nics = false;
    if (auto back = enter_netns(outside.value()); !back) return back.error();
    if (!tun) return tun.error();
    testbed.tuns.push_back(std::move(tun).value());
  }
  if (auto written = write_hosts_file(topology, place); !written) return written.error();
  return testbed;
}

}  // namespace tw::wan
