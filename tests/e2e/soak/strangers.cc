// SPDX-License-Identifier: Apache-2.0
#include "e2e/soak/strangers.h"

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

Strangers::Strangers(Options options)
    : options_(std::move(options)), target_(address_of(options_.target)), prng_(options_.seed) {
  for (std::size_t i = 0; i < options_.connections; ++i)
    strangers_.push_back({.manner = static_cast<Manner>(i % 3)});
  thread_ = std::thread([this] { besiege(); });
}

Strangers::~Strangers() {
  over_ = true;
  thread_.join();
  for (const Stranger& stranger : strangers_) {
    if (stranger.socket >= 0) close(stranger.socket);
  }
}

void Strangers::besiege() {
  enter(options_.netns);
  while (!over_) {
    int dials = kDialsOfATurn;
    for (Stranger& stranger : strangers_) {
      if (stranger.socket >= 0) {
        act(stranger);
      } else if (dials-- > 0) {
        dial(stranger);
      }
    }
    std::this_thread::sleep_for(kTurn);
  }
}

void Strangers::dial(Stranger& stranger) {
  stranger.socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (stranger.socket < 0) return;
  // The answer comes while it is in progress, or never: both are a stranger's way.
  if (connect(stranger.socket, reinterpret_cast<const sockaddr*>(&target_), sizeof target_) == 0 ||
      errno == EINPROGRESS) {
    ++made_;
    return;
  }
  close(stranger.socket);
  stranger.socket = -1;
}

void Strangers::act(Stranger& stranger) {
  char byte = 0;
  const ssize_t got = recv(stranger.socket, &byte, 1, MSG_DONTWAIT);
  bool gone = got == 0 || (got < 0 && errno != EAGAIN && errno != ENOTCONN);
  if (stranger.manner == Manner::slow && !gone && prng_.chance(0.1)) {
    byte = static_cast<char>(prng_.next());
    gone = send(stranger.socket, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN;
  }
  if (stranger.manner == Manner::garbage && !gone) {
    std::vector<char> garbage(1 + prng_.below(kMostGarbage));
    for (char& c : garbage) c = static_cast<char>(prng_.next());
    if (prng_.chance(0.5)) garbage[0] = 0x16;  // as a TLS handshake begins
    gone = send(stranger.socket, garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
           errno != EAGAIN;
  }
  if (!gone) return;
  close(stranger.socket);
  stranger.socket = -1;
}

}  // namespace tw::soak
