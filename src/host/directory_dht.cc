// SPDX-License-Identifier: Apache-2.0
#include "host/directory_dht.h"

#include <fmt/format.h>
#include <opendht/dhtrunner.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "host/identity/announcement.h"
#include "host/lifeline.h"
#include "host/loop.h"

namespace tw::host {
namespace {

using namespace std::chrono_literals;

// Nodes of other networks (Jami and others) neither store for this one nor use it.
constexpr dht::NetId kNetwork = 0x5457;
constexpr std::size_t kStoreBytes = 1 << 20;
constexpr auto kLasts = 10min;
constexpr Duration kRenewEvery = 3min;
constexpr Duration kRetryAfter = 1s;  // a node without others can store nowhere
constexpr auto kAskEvery = 300ms;

dht::InfoHash place_of(const wire::Token& token) {
  std::string key = "tradewind run ";
  key.append(reinterpret_cast<const char*>(token.run_key.data()), token.run_key.size());
  return dht::InfoHash::get(key);
}

using Wall = std::chrono::steady_clock;

std::int64_t unix_seconds() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since_1970).count();
}

/// The answers to one question so far. Filled by the thread of the node.
// owners: find, and the calls of the node that may come later
struct Answers {
  std::mutex mutex;
  std::condition_variable over;
  std::vector<dht::Blob> values;
  bool done = false;
};

}  // namespace

struct DhtDirectory::Node {
  dht::DhtRunner runner;
  std::string address;  // that is announced
  Lifeline life;

  ~Node() { runner.join(); }

  /// All values at this place.
  std::vector<dht::Blob> ask(const dht::InfoHash& place, Duration patience) {
    const auto answers = std::make_shared<Answers>();  // owners: see Answers
    runner.get(
        place,
        [answers](const std::vector<std::shared_ptr<dht::Value>>& values) {  // owners: the node
          const std::lock_guard lock(answers->mutex);
          for (const auto& value : values) answers->values.push_back(value->data);
          return true;
        },
        [answers](bool) {
          const std::lock_guard lock(answers->mutex);
          answers->done = true;
          answers->over.notify_all();
        });
    std::unique_lock lock(answers->mutex);
    answers->over.wait_for(lock, patience, [&] { return answers->done; });
    return answers->values;
  }

  bool has_company() const {
    return runner.getNodesStats(AF_INET).good_nodes + runner.getNodesStats(AF_INET6).good_nodes > 0;
  }

  void announce(Loop& loop, const Identity& identity) {
    const std::int64_t until = unix_seconds() + std::chrono::seconds(kLasts).count();
    const auto bytes = sign_announcement(identity.token, address, until);
    const auto* raw = reinterpret_cast<const std::uint8_t*>(bytes.data());
    auto again = life.tie([this, &loop, &identity] { announce(loop, identity); });
    runner.put(place_of(identity.token), dht::Value(raw, bytes.size()), [&loop, again](bool stored) {
      loop.post(
          [&loop, again, stored] { loop.at(loop.now() + (stored ? kRenewEvery : kRetryAfter), again); });
    });
  }
};

bool DhtDirectory::available() { return true; }

Result<std::unique_ptr<DhtDirectory>> DhtDirectory::open(Identity identity, std::uint16_t udp_port) {
  auto node = std::make_unique<Node>();
  for (const std::uint16_t port : {udp_port, std::uint16_t{0}}) {
    dht::DhtRunner::Config config;
    config.dht_config.node_config.network = kNetwork;
    config.threaded = true;
    try {
      node->runner.run(port, config);
      node->runner.setStorageLimit(kStoreBytes);
      return std::unique_ptr<DhtDirectory>(new DhtDirectory(std::move(identity), std::move(node)));
    } catch (const std::exception& error) {
      if (port == 0) return Error{fmt::format("cannot open a UDP port for the directory: {}", error.what())};
      node = std::make_unique<Node>();
    }
  }
  return Error{"cannot open a UDP port for the directory"};
}

DhtDirectory::DhtDirectory(Identity identity, std::unique_ptr<Node> node)
    : identity_(std::move(identity)), node_(std::move(node)) {}

DhtDirectory::~DhtDirectory() = default;

std::uint16_t DhtDirectory::port() const { return node_->runner.getBoundPort(); }

Result<std::vector<std::string>> DhtDirectory::find(const Address& bootstrap, Duration patience) {
  try {
    dht::SockAddr::resolve(bootstrap.host, std::to_string(bootstrap.port));
  } catch (const std::exception&) {
    return Error{"no such host is known"};
  }
  node_->runner.bootstrap(bootstrap.host, std::to_string(bootstrap.port));
  std::size_t unsound = 0;
  for (const Wall::time_point end = Wall::now() + patience; Wall::now() < end;) {
    const Wall::time_point asked = Wall::now();
    const auto values = node_->ask(place_of(identity_.token), end - asked);
    std::set<std::string> found;
    for (const dht::Blob& value : values) {
      if (const auto address =
              read_announcement(std::as_bytes(std::span(value)), identity_.tls, unix_seconds()))
        found.insert(*address);
    }
    if (!found.empty()) return std::vector<std::string>(found.begin(), found.end());
    unsound = std::max(unsound, values.size());
    std::this_thread::sleep_until(asked + kAskEvery);
  }
  const double seconds = to_seconds(patience);
  if (!node_->has_company())
    return Error{
        fmt::format("it does not answer on UDP port {} within {:.0f} s; is a peer running there whose "
                    "`--bootstrap` line names this port, and does a firewall let UDP through?",
                    bootstrap.port, seconds)};
  const std::string what = unsound > 0
                               ? fmt::format("{} announcements there are expired or not of this run", unsound)
                               : std::string("it answers, but no peer of this run is announced");
  return Error{fmt::format("{} within {:.0f} s; did the first peer of run {} begin, beyond its own machine?",
                           what, seconds, run_of(identity_.token))};
}

void DhtDirectory::announce(Loop& loop, const std::string& address) {
  node_->address = address;
  node_->announce(loop, identity_);
}

}  // namespace tw::host
