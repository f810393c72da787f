// SPDX-License-Identifier: Apache-2.0
//
// One rank of a plain butterfly, for `tw bench reduce --vs butterfly`: every rank reduces an equal share of
// the vector, over one TCP stream for each pair, in fp16 on the wire. It is what averaging by Hivemind is on
// the wire (Erben et al., VLDB 2024, section 2), without its matchmaking: scatter and gather overlap, piece
// by piece.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "all_reduce.h"
#include "codec/codec.h"

namespace tw::bench {
namespace {

constexpr std::uint64_t kPiece = 65536;  // floats
constexpr codec::Codec kCodec = codec::Codec::fp16;

void must(bool done, const char* what) {
  if (!done) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

sockaddr_in parse(const std::string& address, int port) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<std::uint16_t>(port));
  must(inet_pton(AF_INET, address.c_str(), &place.sin_addr) == 1, "address");
  return place;
}

/// The stream to one other rank. Closed when the process ends.
class Wire {
 public:
  explicit Wire(int socket) : socket_(socket) {
    const int on = 1;
    must(setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "TCP_NODELAY");
  }

  void send(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      must(sent > 0, "send");
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
  }

  void receive(std::span<std::byte> bytes) const {
    must(recv(socket_, bytes.data(), bytes.size(), MSG_WAITALL) == static_cast<ssize_t>(bytes.size()),
         "receive");
  }

 private:
  int socket_;
};

/// Lower ranks listen for higher ones.
class Mesh {
 public:
  explicit Mesh(const Rank& setup) : rank_(setup.task.rank) {
    const int listener = listen(setup);
    for (int other = 0; other < rank_; ++other) wires_.emplace(other, dial(setup, other));
    for (int other = rank_ + 1; other < setup.task.peers; ++other) {
      const int socket = accept(listener, nullptr, nullptr);
      must(socket >= 0, "accept");
      std::int32_t name = 0;
      must(recv(socket, &name, sizeof name, MSG_WAITALL) == sizeof name, "receive");
      wires_.emplace(name, socket);
    }
  }

  const std::map<int, Wire>& wires() const { return wires_; }

 private:
  static std::string card(const Rank& setup, int rank) { return fmt::format("{}/at-{}", setup.store, rank); }

  static int listen(const Rank& setup) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in own = parse(setup.address, 0);
    socklen_t size = sizeof own;
    must(bind(listener, reinterpret_cast<sockaddr*>(&own), size) == 0, "bind");
    must(::listen(listener, measure::kMostPlaces) == 0, "listen");
    must(getsockname(listener, reinterpret_cast<sockaddr*>(&own), &size) == 0, "getsockname");
    const std::string path = card(setup, setup.task.rank);
    std::ofstream(path + ".new") << setup.address << ' ' << ntohs(own.sin_port) << '\n';
    std::filesystem::rename(path + ".new", path);
    return listener;
  }

  static int dial(const Rank& setup, int other) {
    while (!std::filesystem::exists(card(setup, other)))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::string address;
    int port = 0;
    std::ifstream(card(setup, other)) >> address >> port;
    const sockaddr_in place = parse(address, port);
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    must(connect(socket, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0, "connect");
    const std::int32_t name = setup.task.rank;
    must(::send(socket, &name, sizeof name, MSG_NOSIGNAL) == sizeof name, "send");
    return socket;
  }

  int rank_;
  std::map<int, Wire> wires_;
};

/// The data of one rank in a round: the whole vector, and its share of the mean.
class Butterfly {
 public:
  Butterfly(const Rank& setup, std::span<float> values) : setup_(setup), mesh_(setup), values_(values) {}

  void reduce() {
    arrived_.assign(pieces(setup_.task.rank), 0);
    sealed_.assign(pieces(setup_.task.rank), {});
    std::vector<std::thread> threads;
    for (const auto& [other, wire] : mesh_.wires()) {
      threads.emplace_back([this, other = other, &wire = wire] { give(other, wire); });
      threads.emplace_back([this, other = other, &wire = wire] { take(other, wire); });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::uint64_t begin_of(int owner) const {
    return setup_.task.length() * static_cast<std::uint64_t>(owner) /
           static_cast<std::uint64_t>(setup_.task.peers);
  }

  std::uint64_t pieces(int owner) const {
    return (begin_of(owner + 1) - begin_of(owner) + kPiece - 1) / kPiece;
  }

  std::span<float> piece(int owner, std::uint64_t number) const {
    const std::uint64_t first = begin_of(owner) + number * kPiece;
    return values_.subspan(first, std::min(kPiece, begin_of(owner + 1) - first));
  }

  void give(int other, const Wire& wire) {
    for (std::uint64_t i = 0; i < pieces(other); ++i) {
      const std::span<float> from = piece(other, i);
      std::vector<std::byte> encoded(encoded_bytes(kCodec, from.size()));
      encode(kCodec, from, 1, encoded);
      wire.send(encoded);
    }
    for (std::uint64_t i = 0; i < pieces(setup_.task.rank); ++i) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !sealed_[i].empty(); });
      lock.unlock();
      wire.send(sealed_[i]);
    }
  }

  void take(int other, const Wire& wire) {
    std::vector<std::byte> encoded;
    for (std::uint64_t i = 0; i < pieces(setup_.task.rank); ++i) {
      const std::span<float> sum = piece(setup_.task.rank, i);
      encoded.resize(encoded_bytes(kCodec, sum.size()));
      wire.receive(encoded);
      const std::lock_guard lock(mutex_);
      decode_add(kCodec, encoded, 1, sum);
      if (++arrived_[i] + 1 == setup_.task.peers) seal(i, sum);
    }
    for (std::uint64_t i = 0; i < pieces(other); ++i) {
      const std::span<float> mean = piece(other, i);
      encoded.resize(encoded_bytes(kCodec, mean.size()));
      wire.receive(encoded);
      decode(kCodec, encoded, mean);
    }
  }

  void seal(std::uint64_t i, std::span<float> sum) {
    std::vector<std::byte> encoded(encoded_bytes(kCodec, sum.size()));
    encode(kCodec, sum, 1, encoded);
    sealed_[i] = std::move(encoded);
    changed_.notify_all();
  }

  Rank setup_;
  Mesh mesh_;
  std::span<float> values_;
  std::mutex mutex_;  ///< of what follows, and of the own share
  std::condition_variable changed_;
  std::vector<int> arrived_;
  std::vector<std::vector<std::byte>> sealed_;
};

int reduce(const Rank& setup) {
  std::vector<float> values(setup.task.length());
  Butterfly butterfly(setup, values);
  return take_part(setup.task, values, [&](int) { butterfly.reduce(); });
}

}  // namespace
}  // namespace tw::bench

int main(int argc, char** argv) {
  using namespace tw::bench;
  CLI::App app;
  Rank setup;
  setup.describe(app);
  CLI11_PARSE(app, argc, argv);
  return reduce(setup);
}
