// SPDX-License-Identifier: Apache-2.0
#include "e2e/soak/attackers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/check.h"

namespace tw::soak {
namespace {

using namespace std::chrono_literals;

/// Between two looks at all of them; each look dials a few again at most, so that the siege itself costs
/// little of a core.
constexpr auto kTurn = 50ms;
constexpr int kDialsOfATurn = 5;
constexpr std::size_t kMostGarbage = 4096;

sockaddr_in address_of(const std::string& text) {
  sockaddr_in address{};
  const std::size_t colon = text.rfind(':');
  TW_CHECK(colon != std::string::npos);
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(text.substr(colon + 1))));
  TW_CHECK(inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) == 1);
  return address;
}

void enter(const std::string& netns) {
  if (netns.empty()) return;
  const int file = open(("/run/netns/" + netns).c_str(), O_RDONLY | O_CLOEXEC);
  TW_CHECK(file >= 0 && setns(file, CLONE_NEWNET) == 0);
  close(file);
}

}  // namespace

Attackers::Attackers(Options options)
    : options_(std::move(options)), target_(address_of(options_.target)), prng_(options_.seed) {
  for (std::size_t i = 0; i < options_.connections; ++i)
    attackers_.push_back({.manner = static_cast<Manner>(i % 3)});
  thread_ = std::thread([this] { besiege(); });
}

Attackers::~Attackers() {
  over_ = true;
  thread_.join();
  for (const Attacker& attacker : attackers_) {
    if (attacker.socket >= 0) close(attacker.socket);
  }
}

void Attackers::besiege() {
  enter(options_.netns);
  while (!over_) {
    int dials = kDialsOfATurn;
    for (Attacker& attacker : attackers_) {
      if (attacker.socket >= 0) {
        act(attacker);
      } else if (dials-- > 0) {
        dial(attacker);
      }
    }
    std::this_thread::sleep_for(kTurn);
  }
}

void Attackers::dial(Attacker& attacker) {
  attacker.socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (attacker.socket < 0) return;
  // The answer comes while it is in progress, or never: both are an attacker's way.
  if (connect(attacker.socket, reinterpret_cast<const sockaddr*>(&target_), sizeof target_) == 0 ||
      errno == EINPROGRESS) {
    ++made_;
    return;
  }
  close(attacker.socket);
  attacker.socket = -1;
}

void Attackers::act(Attacker& attacker) {
  char byte = 0;
  const ssize_t got = recv(attacker.socket, &byte, 1, MSG_DONTWAIT);
  bool gone = got == 0 || (got < 0 && errno != EAGAIN && errno != ENOTCONN);
  if (attacker.manner == Manner::slow && !gone && prng_.chance(0.1)) {
    byte = static_cast<char>(prng_.next());
    gone = send(attacker.socket, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN;
  }
  if (attacker.manner == Manner::garbage && !gone) {
    std::vector<char> garbage(1 + prng_.below(kMostGarbage));
    for (char& c : garbage) c = static_cast<char>(prng_.next());
    if (prng_.chance(0.5)) garbage[0] = 0x16;  // as a TLS handshake begins
    gone = send(attacker.socket, garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
           errno != EAGAIN;
  }
  if (!gone) return;
  close(attacker.socket);
  attacker.socket = -1;
}

}  // namespace tw::soak
