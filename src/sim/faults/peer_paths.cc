// SPDX-License-Identifier: Apache-2.0
#include "sim/faults/peer_paths.h"

#include <fmt/format.h>

#include <algorithm>

namespace tw::sim {

void PeerPaths::add(PeerId peer, bool is_twin) {
  if (!is_twin) ports_[peer] = static_cast<int>(owners_.size());
  owners_.push_back(peer);
}

void PeerPaths::lay(int low, int high, const Quality& drawn) {
  drawn_[{low, high}] = drawn;
  network_.set_quality(high, low, drawn);
}

void PeerPaths::isolate(const std::set<PeerId>& peers, bool close_links) {
  std::set<int> ports;
  std::string names;
  for (const PeerId peer : peers) {
    ports.insert(ports_.at(peer));
    names += to_string(peer) + " ";
  }
  note(names + "are cut off");
  network_.isolate(ports, close_links);
}

void PeerPaths::hold_from(const std::set<PeerId>& peers) {
  std::string names;
  for (const PeerId peer : peers) {
    names += to_string(peer) + " ";
    for (const auto& [other, port] : ports_) {
      if (!peers.contains(other)) network_.hold(ports_.at(peer), port);
    }
  }
  note(names + "are not heard by the others");
}

void PeerPaths::clog(PeerId peer) {
  note(fmt::format("{} is clogged", peer.value));
  const int own = ports_.at(peer);
  for (const auto& [other, port] : ports_) {
    if (other == peer) continue;
    network_.hold(own, port);
    network_.hold(port, own);
  }
}

void PeerPaths::unclog(PeerId peer) {
  note(fmt::format("{} is free", peer.value));
  const int own = ports_.at(peer);
  for (const auto& [other, port] : ports_) {
    if (other == peer) continue;
    network_.release(own, port);
    network_.release(port, own);
  }
}

void PeerPaths::heal() {
  note("all are together");
  network_.heal();
  for (const auto& [ends, quality] : drawn_) network_.set_quality(ends.first, ends.second, quality);
}

void PeerPaths::reset_link(PeerId a, PeerId b) {
  note(fmt::format("the link {} {} is reset", a.value, b.value));
  network_.reset(ports_.at(a), ports_.at(b));
}

void PeerPaths::black_hole(PeerId a, PeerId b) {
  note(fmt::format("the link {} {} is a black hole", a.value, b.value));
  network_.black_hole(ports_.at(a), ports_.at(b));
}

Quality PeerPaths::path(PeerId a, PeerId b) const {
  const auto [low, high] = std::minmax({ports_.at(a), ports_.at(b)});
  return drawn_.at({low, high});
}

void PeerPaths::set_path(PeerId a, PeerId b, const Quality& quality) {
  network_.set_quality(ports_.at(a), ports_.at(b), quality);
}

void PeerPaths::set_line(PeerId peer, Capacity line) { network_.set_capacity(ports_.at(peer), line); }

PeerPaths::Sent PeerPaths::sent(PeerId peer) const {
  Sent sent;
  const int ports = static_cast<int>(owners_.size());
  for (int port = 0; port < ports; ++port) {
    if (owners_[static_cast<std::size_t>(port)] != peer) continue;
    sent.control_bytes += network_.control_bytes_sent(port);
    sent.messages += network_.messages_sent(port);
    for (int other = 0; other < ports; ++other) sent.bytes += network_.bytes_sent(port, other);
  }
  return sent;
}

std::uint64_t PeerPaths::sent_bytes() const {
  std::uint64_t bytes = 0;
  const int ports = static_cast<int>(owners_.size());
  for (int from = 0; from < ports; ++from)
    for (int to = 0; to < ports; ++to) bytes += network_.bytes_sent(from, to);
  return bytes;
}

}  // namespace tw::sim
