// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/admission/listener.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <asio/ip/tcp.hpp>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "host/address.h"
#include "host/lifeline.h"
#include "host/loop.h"
#include "host/tcp/fork_guard.h"
#include "host/tcp/socket_error.h"

namespace tw::host {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;

constexpr Duration kWindow = 10ms;
constexpr int kMostInWindow = 40;

/// An address of this family on the first interface that is up and leads somewhere; link-local ones of IPv6
/// lead nowhere without naming the interface.
asio::ip::address first_interface(bool v4) {
  asio::ip::address found = v4 ? asio::ip::address(asio::ip::address_v4::loopback())
                               : asio::ip::address(asio::ip::address_v6::loopback());
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, &::freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const bool leads_out = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (one->ifa_addr == nullptr || !leads_out) continue;
    if (v4 && one->ifa_addr->sa_family == AF_INET) {
      const auto* in = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
      return asio::ip::address_v4(ntohl(in->sin_addr.s_addr));
    }
    if (!v4 && one->ifa_addr->sa_family == AF_INET6) {
      const auto* in = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
      if (!IN6_IS_ADDR_LINKLOCAL(&in->sin6_addr))
        return asio::ip::make_address_v6(std::to_array(in->sin6_addr.s6_addr));
    }
  }
  return found;
}

std::string reachable(const tcp::endpoint& endpoint) {
  const auto address =
      endpoint.address().is_unspecified() ? first_interface(endpoint.address().is_v4()) : endpoint.address();
  return to_string(Address{address.to_string(), endpoint.port()});
}

Error cannot_listen(const std::string& address, const std::error_code& error) {
  const char* advice = "";
  if (error == asio::error::address_in_use) {
    advice = " (another process has this port; listen on another one, port 0 picks a free one)";
  }
  if (error.value() == EADDRNOTAVAIL)  // asio has no name for it
    advice = " (no address of this machine; ip -brief address shows them, 0.0.0.0 and [::] stand for all)";
  if (error == asio::error::access_denied) advice = " (ports below 1024 are root's; listen on a higher one)";
  return Error{fmt::format("cannot listen on {}: {}{}", address, in_words(error), advice)};
}

std::error_code bind_and_listen(tcp::acceptor& acceptor, const Address& address) {
  std::error_code error;
  tcp::resolver resolver(acceptor.get_executor());
  const auto found =
      resolver.resolve(address.host, std::to_string(address.port), tcp::resolver::passive, error);
  if (error) return error;
  const tcp::endpoint endpoint = *found.begin();
  if (acceptor.open(endpoint.protocol(), error); error) return error;
  if (acceptor.set_option(tcp::acceptor::reuse_address(true), error); error) return error;
  if (acceptor.bind(endpoint, error); error) return error;
  acceptor.listen(tcp::acceptor::max_listen_connections, error);
  return error;
}

bool is_exhaustion(const std::error_code& error) {
  const int number = error.value();  // of the system, all that accept ends with
  return number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM;
}

}  // namespace

struct Listener::Socket {
  explicit Socket(Loop& loop) : acceptor(loop.context()) {}

  tcp::acceptor acceptor;
  std::optional<ForkGuard> guard{};
  Lifeline life;
};

Result<std::unique_ptr<Listener>> Listener::open(Loop& loop, const std::string& address, Accepted accepted,
                                                 Exhausted exhausted) {
  const auto parsed = parse_address(address);
  if (!parsed) return Error{fmt::format("cannot listen: {}", parsed.error().message)};
  auto socket = std::make_unique<Socket>(loop);
  if (const auto error = bind_and_listen(socket->acceptor, parsed.value()))
    return cannot_listen(address, error);
  socket->guard.emplace(socket->acceptor.native_handle());
  std::unique_ptr<Listener> listener(
      new Listener(loop, std::move(socket), std::move(accepted), std::move(exhausted)));
  listener->accept();
  return listener;
}

Listener::Listener(Loop& loop, std::unique_ptr<Socket> socket, Accepted accepted, Exhausted exhausted)
    : loop_(loop),
      socket_(std::move(socket)),
      accepted_(std::move(accepted)),
      exhausted_(std::move(exhausted)),
      address_(reachable(socket_->acceptor.local_endpoint())) {}

Listener::~Listener() = default;

void Listener::accept() {
  socket_->acceptor.async_accept(socket_->life.tie([this](const std::error_code& error, tcp::socket socket) {
    if (!error) accepted_(std::move(socket));
    go_on_after(error);
  }));
}

void Listener::accept_later(Instant when) {
  loop_.at(when, socket_->life.tie([this] { accept(); }));
}

void Listener::go_on_after(const std::error_code& error) {
  const Instant now = loop_.now();
  const bool came_and_went = error == asio::error::connection_aborted;
  // Until a descriptor is free again, the connection waits in the kernel.
  const bool went_on = is_exhaustion(error) ? exhausted_(error) : !error || came_and_went;
  if (!went_on) return accept_later(now + 100ms);
  if (now - window_ >= kWindow) {
    window_ = now;
    in_window_ = 0;
  }
  if (++in_window_ < kMostInWindow) return accept();
  accept_later(window_ + kWindow);
}

}  // namespace tw::host
