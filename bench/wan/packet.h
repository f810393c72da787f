// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace tw::wan {

/// Longest that a TUN device hands over: a virtio_net_hdr and an IP packet, which stands for many with TSO.
inline constexpr std::size_t kVnetHeader = 10;
inline constexpr std::size_t kLargestRead = kVnetHeader + 65535;

/// Facts about a packet for the box.
struct Envelope {
  std::uint32_t source = 0;  ///< IPv4 addresses, host order
  std::uint32_t destination = 0;
  std::uint32_t packets = 1;     ///< on the wire, after segmentation
  std::uint32_t wire_bytes = 0;  ///< of their IP packets, each with its headers
  bool operator==(const Envelope&) const = default;
};

/// Reads a virtio_net_hdr and the IPv4 packet after it. Nothing for what is neither IPv4 nor whole.
std::optional<Envelope> read_envelope(std::span<const std::byte> frame);

/// The bytes of a packet, a virtio_net_hdr before them.
struct Frame {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;

  std::span<const std::byte> span() const { return {bytes.get(), size}; }
};

}  // namespace tw::wan
