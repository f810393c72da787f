// SPDX-License-Identifier: Apache-2.0
#include "wan/tun.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace tw::wan {
namespace {

constexpr const char* kName = "wan0";
/// Frames that wait for the box: what a host sends at 5 Gbit/s in 24 ms, were each a packet of 1500 bytes.
constexpr int kQueueFrames = 10000;

ifreq request_for(const char* device) {
  ifreq request{};
  std::strncpy(request.ifr_name, device, IFNAMSIZ - 1);
  return request;
}

void put_address(sockaddr& place, const std::string& address) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  inet_pton(AF_INET, address.c_str(), &in.sin_addr);
  std::memcpy(&place, &in, sizeof in);
}

Status bring_up(const Fd& socket, const char* device) {
  ifreq request = request_for(device);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return os_error(device);
  return tw::Unit{};
}

Status configure(const Tun::Options& options) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return os_error("socket");
  ifreq request = request_for(kName);
  put_address(request.ifr_addr, options.address);
  if (ioctl(socket.get(), SIOCSIFADDR, &request) != 0) return os_error("address of wan0");
  put_address(request.ifr_netmask, "255.255.0.0");
  if (ioctl(socket.get(), SIOCSIFNETMASK, &request) != 0) return os_error("netmask of wan0");
  request.ifr_mtu = options.mtu;
  if (ioctl(socket.get(), SIOCSIFMTU, &request) != 0) return os_error("mtu of wan0");
  request.ifr_qlen = kQueueFrames;
  if (ioctl(socket.get(), SIOCSIFTXQLEN, &request) != 0) return os_error("queue of wan0");
  if (auto up = bring_up(socket, "lo"); !up) return up;
  return bring_up(socket, kName);
}

}  // namespace

Result<Tun> Tun::open(const Options& options) {
  Fd fd(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return os_error("/dev/net/tun");
  ifreq request = request_for(kName);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  if (ioctl(fd.get(), TUNSETIFF, &request) != 0) return os_error("TUNSETIFF");
  if (auto done = write_sysctl("ipv6/conf/wan0/disable_ipv6", "1"); !done) return done.error();
  Fd statistics(::open("/proc/thread-self/net/dev", O_RDONLY | O_CLOEXEC));
  if (!statistics.valid()) return os_error("/proc/thread-self/net/dev");
  Tun tun(std::move(fd), std::move(statistics));
  if (auto done = tun.set_offloads(options.offloads); !done) return done.error();
  if (auto done = configure(options); !done) return done.error();
  return tun;
}

Status Tun::set_offloads(bool on) const {
  const unsigned long offloads = on ? TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO_ECN : 0;
  if (ioctl(fd_.get(), TUNSETOFFLOAD, offloads) != 0) return os_error("TUNSETOFFLOAD");
  return tw::Unit{};
}

std::size_t Tun::read(std::span<std::byte> frame) const {
  const ssize_t size = ::read(fd_.get(), frame.data(), frame.size());
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

void Tun::write(std::span<const std::byte> frame) const {
  // A host that refuses a packet (no memory, device down) loses it, as on any network.
  [[maybe_unused]] const ssize_t written = ::write(fd_.get(), frame.data(), frame.size());
}

std::uint64_t Tun::unread() const {
  std::array<char, 4096> text{};
  if (pread(statistics_.get(), text.data(), text.size() - 1, 0) <= 0) return 0;
  const char* line = std::strstr(text.data(), "wan0:");
  unsigned long long dropped = 0;
  // Eight numbers of what was received, then bytes, packets, errors and drops of what was sent.
  if (line != nullptr) std::sscanf(line, "wan0: %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %llu", &dropped);
  return dropped;
}

}  // namespace tw::wan
