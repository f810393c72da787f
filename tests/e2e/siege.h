// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "host/address.h"

namespace tw {

/// Strangers that besiege one peer: from construction to destruction a thread holds open as many connections
/// to its address as the plan says, none of which ever says anything that a peer of the run would. A
/// connection that ends is opened again.
class Siege {
 public:
  struct Plan {
    int idle = 500;      ///< connections that say nothing
    int slow = 500;      ///< connections that say a byte now and then
    int hosts = 8;       ///< they come from so many addresses of the loopback in turn,
    int first_host = 2;  ///< 127.0.0.2 and those after it
    std::chrono::milliseconds byte_every{300};
    int most_dials_per_s = 2000;
    /// What the slow ones say, byte by byte, the last byte for ever: the begin of a TLS record of 16 KiB.
    std::string words{"\x16\x03\x01\x3f\xff\x01\x00\x3f\xfb\x03\x03\x00", 12};
  };

  /// An address "127.0.0.1:port" (or another one that the loopback leads to).
  explicit Siege(const std::string& address) : Siege(address, Plan()) {}

  Siege(const std::string& address, Plan plan) : plan_(std::move(plan)) {
    const auto parsed = host::parse_address(address);
    TW_CHECK(parsed.ok());
    to_.sin_family = AF_INET;
    to_.sin_port = htons(parsed.value().port);
    TW_CHECK(::inet_pton(AF_INET, parsed.value().host.c_str(), &to_.sin_addr) == 1);
    attackers_.resize(static_cast<std::size_t>(plan_.idle + plan_.slow));
    allow_descriptors(attackers_.size() + 256);
    thread_ = std::thread([this] { run(); });
  }

  ~Siege() {
    over_ = true;
    thread_.join();
    for (const Attacker& attacker : attackers_)
      if (attacker.socket >= 0) ::close(attacker.socket);
  }

  Siege(const Siege&) = delete;
  Siege& operator=(const Siege&) = delete;

  long dialed() const { return dialed_; }  ///< connections opened until now

  long ended() const { return ended_; }  ///< by the peer, or never established

 private:
  using Clock = std::chrono::steady_clock;

  struct Attacker {
    int socket = -1;
    std::size_t said = 0;
    Clock::time_point next_byte{};
  };

  static constexpr std::chrono::milliseconds kTick{20};

  static void allow_descriptors(std::size_t needed) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= needed) return;
    limit.rlim_cur = std::min<rlim_t>(needed, limit.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }

  void run() {
    for (auto next = Clock::now(); !over_; next += kTick) {
      std::this_thread::sleep_until(next);
      notice_ends();
      int dials = static_cast<int>(plan_.most_dials_per_s * kTick.count() / 1000);
      for (std::size_t i = 0; i < attackers_.size(); ++i) {
        Attacker& attacker = attackers_[next_ = (next_ + 1) % attackers_.size()];
        if (attacker.socket < 0 && dials-- > 0) dial(attacker);
        // The slow ones are spread evenly over the hosts.
        if (is_slow(next_) && attacker.socket >= 0) say_a_byte(attacker);
      }
    }
  }

  bool is_slow(std::size_t number) const {
    const auto all = attackers_.size();
    const auto slow = static_cast<std::size_t>(plan_.slow);
    return (number + 1) * slow / all > number * slow / all;
  }

  void notice_ends() {
    std::vector<pollfd> polled;
    std::vector<Attacker*> of;
    for (Attacker& attacker : attackers_) {
      if (attacker.socket < 0) continue;
      polled.push_back({attacker.socket, POLLIN, 0});
      of.push_back(&attacker);
    }
    if (::poll(polled.data(), polled.size(), 0) <= 0) return;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      char sink[4096];
      const ssize_t got = ::recv(of[i]->socket, sink, sizeof sink, MSG_DONTWAIT);
      if (got > 0 || (got < 0 && (errno == EAGAIN || errno == ENOTCONN))) continue;
      ::close(of[i]->socket);
      *of[i] = Attacker{};
      ++ended_;
    }
  }

  void dial(Attacker& attacker) {
    attacker.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (attacker.socket < 0) return;
    sockaddr_in from{};
    from.sin_family = AF_INET;
    const auto host = static_cast<std::uint32_t>(plan_.first_host + dialed_ % plan_.hosts);
    from.sin_addr.s_addr = htonl(0x7f000000U + host);
    ++dialed_;
    const bool bound = ::bind(attacker.socket, reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0;
    if (bound && (::connect(attacker.socket, reinterpret_cast<const sockaddr*>(&to_), sizeof to_) == 0 ||
                  errno == EINPROGRESS))
      return;
    ::close(attacker.socket);
    attacker.socket = -1;
    ++ended_;
  }

  void say_a_byte(Attacker& attacker) {
    const auto now = Clock::now();
    if (now < attacker.next_byte) return;
    attacker.next_byte = now + plan_.byte_every;
    const char byte = plan_.words[std::min(attacker.said++, plan_.words.size() - 1)];
    (void)!::send(attacker.socket, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  Plan plan_;
  sockaddr_in to_{};
  std::vector<Attacker> attackers_;
  std::size_t next_ = 0;
  std::atomic<long> dialed_ = 0;
  std::atomic<long> ended_ = 0;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

}  // namespace tw
