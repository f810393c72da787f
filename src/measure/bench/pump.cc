// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/pump.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/blob.h"
#include "base/cause_text.h"
#include "base/digest.h"
#include "base/result.h"
#include "host/system/cpu_time.h"

namespace tw::measure {
namespace {

/// As iperf3 does by default.
constexpr std::size_t kPiece = 128 << 10;
/// For the windows to grow; not measured.
constexpr Duration kRunUp = std::chrono::milliseconds(100);

constexpr std::uint64_t kCarriedChunk = 512 << 10;

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}

  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  Socket(const Socket&) = delete;
  Socket& operator=(Socket&&) = delete;

  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }

  int fd() const { return fd_; }

 private:
  int fd_;
};

struct Pair {
  Socket from;
  Socket to;
};

Result<Pair> connected_pair() {
  Socket listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const bool listens = bind(listener.fd(), generic, length) == 0 && listen(listener.fd(), 1) == 0 &&
                       getsockname(listener.fd(), generic, &length) == 0;
  Socket from(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listens || connect(from.fd(), generic, length) != 0)
    return Error{std::string("cannot connect to 127.0.0.1: ") + cause_text(errno)};
  Socket to(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (to.fd() < 0) return Error{std::string("cannot accept on 127.0.0.1: ") + cause_text(errno)};
  return Pair{std::move(from), std::move(to)};
}

bool send_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

Result<double> carry_loopback(std::uint64_t bytes) {
  TW_TRY(const auto pair, connected_pair());
  const std::vector<std::byte> source(bytes, std::byte{42});
  Digest seen;
  bool all = true;
  const double begin_s = wall_seconds();
  std::thread sender([&] { send_all(pair.from.fd(), source); });
  std::vector<Buffer> target;
  for (std::uint64_t rest = bytes; rest > 0 && all; rest -= std::min(rest, kCarriedChunk)) {
    const auto chunk = target.emplace_back(std::min(rest, kCarriedChunk)).bytes();
    all = recv(pair.to.fd(), chunk.data(), chunk.size(), MSG_WAITALL) == std::ssize(chunk);
    seen.low ^= digest_of(std::span<const std::byte>(chunk)).low;
  }
  const double took_s = wall_seconds() - begin_s;
  shutdown(pair.to.fd(), SHUT_RDWR);
  sender.join();
  if (!all || seen.low == 1) return Error{"a connection of the loopback broke off"};
  return took_s;
}

Result<Pumped> pump_loopback(int peers, Duration time) {
  std::vector<Pair> pairs;
  for (int i = 0; i < peers * (peers - 1); ++i) {
    TW_TRY(auto pair, connected_pair());
    pairs.push_back(std::move(pair));
  }
  std::atomic<std::uint64_t> received = 0;
  std::vector<std::thread> threads;
  for (const Pair& pair : pairs) {
    threads.emplace_back([fd = pair.from.fd()] {
      const std::vector<char> piece(kPiece, 'x');
      while (send(fd, piece.data(), piece.size(), MSG_NOSIGNAL) > 0) {
      }
    });
    threads.emplace_back([fd = pair.to.fd(), &received] {
      std::vector<char> piece(kPiece);
      for (ssize_t n = recv(fd, piece.data(), kPiece, 0); n > 0; n = recv(fd, piece.data(), kPiece, 0))
        received += static_cast<std::uint64_t>(n);
    });
  }
  std::this_thread::sleep_for(kRunUp);
  const double begin_s = wall_seconds();
  const double cpu_s = host::cpu_seconds();
  const std::uint64_t before = received;
  std::this_thread::sleep_for(time);
  const double bytes = static_cast<double>(received - before);
  const double took_s = wall_seconds() - begin_s;
  const double spent_s = host::cpu_seconds() - cpu_s;
  for (const Pair& pair : pairs) {
    shutdown(pair.from.fd(), SHUT_RDWR);
    shutdown(pair.to.fd(), SHUT_RDWR);
  }
  for (std::thread& thread : threads) thread.join();
  return Pumped{bytes / took_s, bytes > 0 ? spent_s / (bytes / 1e9) : 0};
}

}  // namespace tw::measure
