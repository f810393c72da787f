// SPDX-License-Identifier: Apache-2.0
#include "launch/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/result.h"

namespace tw::launch {
namespace {

constexpr std::uint16_t kFirstPort = 7000;
constexpr std::uint32_t kPortsInUse = 1000;

/// Prices change while a peer stays where it is.
bool is_same_kind(const Machine& a, const Machine& b) {
  return a.site == b.site && a.vm_type == b.vm_type && a.gpu == b.gpu && a.purchase == b.purchase;
}

class Placing {
 public:
  explicit Placing(const PlacementInputs& inputs) : in_(inputs), number_(inputs.next_number) {}

  Result<std::vector<PeerJob>> run() {
    for (const plan::PlannedGroup& group : in_.plan) keep(group);
    for (PeerJob& peer : peers_)  // all are known: none gets the port of another
      if (peer.untried && needs_host(peer)) follow_line(peer);
    for (std::size_t i = 0; i < in_.plan.size(); ++i) {
      if (!plan::trains(in_.plan[i])) continue;  // an anchor of DeepVM's tiers
      TW_TRY(add(in_.plan[i], kept_[i]));
    }
    std::ranges::sort(peers_, {}, &PeerJob::number);
    return std::move(peers_);
  }

 private:
  void keep(const plan::PlannedGroup& group) {
    int kept = 0;
    for (const PeerJob& old : in_.before) {
      if (kept == group.count) break;
      if (!is_same_kind(old.machine, machine_of(group)) || old.anchor != group.anchor || is_taken(old) ||
          !has_host(old))
        continue;
      PeerJob peer = old;
      fill(peer, group);
      peers_.push_back(std::move(peer));
      ++kept;
    }
    kept_.push_back(kept);
  }

  Status add(const plan::PlannedGroup& group, int kept) {
    for (int n = kept; n < group.count; ++n) {
      PeerJob peer{.number = number_++, .untried = true};
      fill(peer, group);
      peer.port = static_cast<std::uint16_t>(kFirstPort + peer.number % kPortsInUse);
      if (needs_host(peer) && !give_host(peer))
        return Error{fmt::format(
            "{} peers of {} at {} ({}) are planned, and the hosts have room for {} of them: add lines to the "
            "file of hosts, or peers=N to a line",
            group.count, group.gpu, market::to_string(group.site), market::to_string(group.purchase), n)};
      peers_.push_back(std::move(peer));
    }
    return Unit{};
  }

  static void fill(PeerJob& peer, const plan::PlannedGroup& group) {
    peer.machine = machine_of(group);
    peer.anchor = group.anchor;
    peer.alternatives.clear();
    for (const plan::PlannedGroup& other : group.alternatives) peer.alternatives.push_back(machine_of(other));
  }

  bool is_taken(const PeerJob& peer) const { return has_peer(peers_, peer.number); }

  bool needs_host(const PeerJob& peer) const {
    if (in_.hosts.empty()) return false;
    return in_.engines.is_empty() || in_.engines.engine_of(peer) == "ssh";
  }

  bool has_host(const PeerJob& peer) const {
    return !needs_host(peer) || std::ranges::find(in_.hosts, peer.host, &Host::ssh) != in_.hosts.end();
  }

  /// The line of one that was never reached may have been wrong, and corrected since.
  void follow_line(PeerJob& peer) const {
    const Host& host = *std::ranges::find(in_.hosts, peer.host, &Host::ssh);
    peer.home = host.home;
    peer.address = host.address;
    if (peer.port >= host.port && peer.port < host.port + host.peers) return;
    if (const auto port = free_port_of(host)) peer.port = *port;
  }

  bool give_host(PeerJob& peer) const {
    for (const Host& host : in_.hosts) {
      if (host.ssh == in_.barred) continue;
      if (host.site && *host.site != peer.machine.site) continue;
      if (!host.gpu.empty() && host.gpu != peer.machine.gpu) continue;
      if (const auto port = free_port_of(host)) {
        peer.host = host.ssh;
        peer.home = host.home;
        peer.address = host.address;
        peer.port = *port;
        return true;
      }
    }
    return false;
  }

  /// Nothing: the host is full.
  std::optional<std::uint16_t> free_port_of(const Host& host) const {
    for (int slot = 0; slot < host.peers; ++slot) {
      const auto port = static_cast<std::uint16_t>(host.port + slot);
      const auto here = [&](const PeerJob& peer) { return peer.host == host.ssh && peer.port == port; };
      if (std::ranges::none_of(peers_, here)) return port;
    }
    return std::nullopt;
  }

  const PlacementInputs& in_;
  std::uint32_t number_;
  std::vector<PeerJob> peers_;
  std::vector<int> kept_;  ///< of each group
};

}  // namespace

Result<std::vector<PeerJob>> place(const PlacementInputs& inputs) { return Placing(inputs).run(); }

Difference difference(const std::vector<PeerJob>& before, const std::vector<PeerJob>& after) {
  Difference difference;
  for (const PeerJob& peer : after)
    (has_peer(before, peer.number) ? difference.keep : difference.add).push_back(peer);
  for (const PeerJob& peer : before)
    if (!has_peer(after, peer.number)) difference.drop.push_back(peer);
  return difference;
}

}  // namespace tw::launch
