// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/admission/doorway.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/ip/tcp.hpp>
#include <cerrno>
#include <chrono>
#include <utility>

#include "host/address.h"
#include "host/loop.h"
#include "host/tcp/admission/listener.h"
#include "host/tcp/socket_error.h"

namespace tw::host {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;

constexpr Duration kTellAfter = 300ms;
constexpr Duration kTellAgain = 1min;

std::uint64_t most_descriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

DoorQueue::Rules rules_with(Duration patience) {
  auto rules = DoorQueue::Rules::within(most_descriptors());
  rules.whole = patience;
  return rules;
}

}  // namespace

std::string sharing_host(const asio::ip::address& address) {
  if (address.is_v4()) return address.to_string();
  if (address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return asio::ip::make_address_v6(bytes).to_string();
}

struct Doorway::Waiting {
  enum class Word { none, here, never };

  /// Whether it has said something, without taking it.
  Word word() {
    char first = 0;
    const ssize_t got = ::recv(socket.native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Word::none;
    return got > 0 ? Word::here : Word::never;
  }

  tcp::socket socket;
  std::string remote;
  std::string host;
};

Result<std::unique_ptr<Doorway>> Doorway::open(Loop& loop, const std::string& address, Duration patience,
                                               Calls calls) {
  std::unique_ptr<Doorway> door(new Doorway(loop, patience, std::move(calls)));
  auto arrived = [&here = *door](tcp::socket socket) {
    std::error_code gone;
    const tcp::endpoint from = socket.remote_endpoint(gone);
    if (gone) return;
    auto remote = to_string(Address{from.address().to_string(), from.port()});
    here.arrive(std::make_unique<Waiting>(
        Waiting{std::move(socket), std::move(remote), sharing_host(from.address())}));
  };
  auto listener = Listener::open(loop, address, arrived,
                                 [&here = *door](const std::error_code& why) { return here.make_room(why); });
  if (!listener) return listener.error();
  door->listener_ = std::move(listener).value();
  return door;
}

Doorway::Doorway(Loop& loop, Duration patience, Calls calls)
    : loop_(loop), calls_(std::move(calls)), queue_(rules_with(patience)) {}

Doorway::~Doorway() = default;

const std::string& Doorway::address() const { return listener_->address(); }

void Doorway::know(const std::string& address) {
  const auto parsed = parse_address(address);
  if (!parsed) return;
  std::error_code name;
  const auto number = asio::ip::make_address(parsed.value().host, name);
  if (name) return;
  queue_.know(sharing_host(number));
  arm();
}

void Doorway::failed(Visitor visitor) {
  queue_.failed(visitor);
  arm();
}

void Doorway::leave(Visitor visitor) {
  queue_.leave(visitor);
  arm();
}

void Doorway::arrive(std::unique_ptr<Waiting> stranger) {
  const Visitor visitor = ++last_;
  cannot_accept_since_.reset();
  queue_.arrive(loop_.now(), visitor, stranger->host);
  waiting_[visitor] = std::move(stranger);
  listen_to(visitor);
  step();
}

void Doorway::listen_to(Visitor visitor) {
  auto hears = [this, visitor](const std::error_code& error) {
    if (!error) hear(visitor);  // else its time is over soon
  };
  waiting_.at(visitor)->socket.async_wait(tcp::socket::wait_read, life_.tie(hears));
}

void Doorway::hear(Visitor visitor) {
  const auto found = waiting_.find(visitor);
  if (found == waiting_.end()) return;
  const Waiting::Word word = found->second->word();
  // asio may wake a new socket by an event of the one that had its descriptor before.
  if (word == Waiting::Word::none) return listen_to(visitor);
  if (word == Waiting::Word::here) {
    queue_.spoke(visitor);
  } else {
    const auto gone = std::move(found->second);
    waiting_.erase(found);
    queue_.leave(visitor);
    calls_.gone(gone->remote, std::nullopt);
  }
  step();
}

bool Doorway::make_room(const std::error_code& why) {
  const bool made = queue_.make_room();
  step();
  if (!made) note_cannot_accept(why);
  return made;
}

void Doorway::note_cannot_accept(const std::error_code& why) {
  const Instant now = loop_.now();
  if (!cannot_accept_since_) cannot_accept_since_ = now;
  const bool was_told = told_cannot_accept_ && now - *told_cannot_accept_ < kTellAgain;
  if (was_told || now - *cannot_accept_since_ < kTellAfter || !calls_.cannot_accept) return;
  told_cannot_accept_ = now;
  calls_.cannot_accept(fmt::format("cannot take in connections: {}", in_words(why)));
}

void Doorway::step() {
  const auto [dismissed, turns] = queue_.step(loop_.now());
  for (const DoorQueue::Dismissal& one : dismissed) dismiss(one);
  for (const Visitor visitor : turns) {
    const auto found = waiting_.find(visitor);
    const auto stranger = std::move(found->second);
    waiting_.erase(found);
    calls_.enter(visitor, std::move(stranger->socket));
  }
  arm();
}

void Doorway::dismiss(const DoorQueue::Dismissal& dismissal) {
  const auto found = waiting_.find(dismissal.stranger);
  if (found == waiting_.end()) return calls_.dismiss(dismissal.stranger, dismissal.reason);
  auto stranger = std::move(found->second);
  waiting_.erase(found);
  if (dismissal.reason == Reason::silent && stranger->word() == Waiting::Word::here) {
    // It spoke in time: this thread was busy, and the end of its time was seen before its bytes.
    const Visitor again = ++last_;
    queue_.arrive(loop_.now(), again, stranger->host);
    queue_.spoke(again);
    waiting_[again] = std::move(stranger);
    return;
  }
  calls_.gone(stranger->remote, dismissal.reason);
}

void Doorway::arm() {
  const Instant next = queue_.next_step();
  if (next >= armed_) return;
  armed_ = next;
  loop_.at(next, life_.tie([this, next] {
    if (armed_ != next) return;  // another time was nearer, and then came a step
    armed_ = kNever;
    step();
  }));
}

}  // namespace tw::host
