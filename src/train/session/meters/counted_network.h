// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/time.h"
#include "event/process_facts.h"
#include "world/network.h"
#include "world/store.h"

namespace tw::train {

/// The network of a session; counts sent bytes by the site of the receiver: whole messages, without greetings
/// and framing. Loop thread only; the other network outlives it.
class CountedNetwork final : public world::Network {
 public:
  explicit CountedNetwork(world::Network& network) : network_(network) {}

  Result<std::string> open(const std::string& listen_address, world::NetworkEvents& events) override {
    return network_.open(listen_address, events);
  }

  void greet_with(Frame hello) override { network_.greet_with(std::move(hello)); }

  void connect(const std::string& address) override { network_.connect(address); }

  void close(PeerId peer) override;
  void send(PeerId to, Frame message) override;

  void pull(PeerId to) override { network_.pull(to); }

  /// A link to a peer at this site is open; messages without a link are dropped.
  void opened(PeerId peer, const std::string& site) { sites_[peer] = site; }

  void closed(PeerId peer) { sites_.erase(peer); }

  /// Bytes and requests of stores so far, over other connections.
  void asked(const world::StoreUses& uses);

  /// A bulk message for it was handed to a link.
  void handed(PeerId to, const Frame& message);

  /// Bytes sent so far, by site: at most every 10 s, and only after a change.
  std::optional<event::Traffic> due(Instant now);

  /// The same at once.
  std::optional<event::Traffic> rest(Instant now);

  /// Further sites count together, without a name.
  static constexpr std::size_t kMostSites = 256;

 private:
  world::Network& network_;
  std::map<PeerId, std::string> sites_;
  std::map<std::string, std::uint64_t> bytes_;
  world::StoreUses stores_;
  bool is_told_ = true;
  std::optional<Instant> told_at_;
};

}  // namespace tw::train
