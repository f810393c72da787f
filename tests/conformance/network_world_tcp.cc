// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <deque>
#include <utility>

#include "base/check.h"
#include "conformance/network_world.h"
#include "host/identity/authority.h"
#include "host/identity/tls.h"
#include "host/loop.h"
#include "host/system/random_os.h"
#include "host/tcp/network_tcp.h"

namespace tw::conformance {
namespace {

/// Sockets of this machine; with a token each process has a certificate of the same run.
class TcpWorld final : public NetworkWorld {
 public:
  explicit TcpWorld(std::unique_ptr<host::Tls> tls) : tls_(std::move(tls)) {}

  Process start(PeerId self) override {
    const auto ignore = [](event::Cause, const std::string&) {};
    auto& network = networks_.emplace_back(std::make_unique<host::TcpNetwork>(
        loop_, self, random_, ignore, host::TcpOptions{.tls = tls_.get()}));
    return {network.get(), "127.0.0.1:0", [&network] { network.reset(); }};
  }

  bool run_until(const std::function<bool()>& done) override {
    return loop_.run_until(done, std::chrono::seconds(20));
  }

 private:
  host::Loop loop_;
  host::OsRandom random_;
  std::unique_ptr<host::Tls> tls_;
  std::deque<std::unique_ptr<host::TcpNetwork>> networks_;
};

}  // namespace

std::unique_ptr<NetworkWorld> tcp_world() { return std::make_unique<TcpWorld>(nullptr); }

std::unique_ptr<NetworkWorld> tls_world() {
  constexpr std::int64_t kDay = 86400;
  const std::int64_t now = host::Loop().unix_nanos() / 1'000'000'000;
  const wire::Token token =
      host::Authority::create("words").issue({.from_unix_s = now - kDay, .expires_unix_s = now + kDay});
  auto tls = host::Tls::open(token, now);
  TW_CHECK(tls.ok());
  return std::make_unique<TcpWorld>(std::move(tls).value());
}

}  // namespace tw::conformance
