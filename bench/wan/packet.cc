// SPDX-License-Identifier: Apache-2.0
#include "wan/packet.h"

#include <cstring>

namespace tw::wan {
namespace {

/// virtio_net_hdr of the virtio specification 1.1, section 5.1.6, in host order; <linux/virtio_net.h> is not
/// C++.
struct VnetHeader {
  std::uint8_t flags, gso_type;  ///< gso_type 0: one packet
  std::uint16_t hdr_len, gso_size, csum_start, csum_offset;
};

static_assert(sizeof(VnetHeader) == kVnetHeader);

std::uint32_t big_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<std::uint32_t>(byte);
  return value;
}

/// IP and TCP or UDP; virtio_net_hdr::hdr_len is only a hint.
std::size_t header_bytes(std::span<const std::byte> packet) {
  constexpr int kTcp = 6;
  constexpr std::size_t kUdpHeader = 8, kDataOffset = 12;
  const std::size_t ip = std::to_integer<std::size_t>(packet[0] & std::byte{15}) * 4;
  if (std::to_integer<int>(packet[9]) != kTcp) return ip + kUdpHeader;
  if (packet.size() <= ip + kDataOffset) return packet.size();
  return ip + std::to_integer<std::size_t>(packet[ip + kDataOffset] >> 4) * 4;
}

}  // namespace

std::optional<Envelope> read_envelope(std::span<const std::byte> frame) {
  constexpr std::size_t kShortestHeader = 20;
  if (frame.size() < kVnetHeader + kShortestHeader) return std::nullopt;
  VnetHeader offload;
  std::memcpy(&offload, frame.data(), sizeof offload);
  const auto packet = frame.subspan(kVnetHeader);
  if (std::to_integer<int>(packet[0]) >> 4 != 4) return std::nullopt;
  Envelope envelope{.source = big_endian(packet.subspan(12, 4)),
                    .destination = big_endian(packet.subspan(16, 4)),
                    .wire_bytes = static_cast<std::uint32_t>(packet.size())};
  if (offload.gso_type == 0 || offload.gso_size == 0) return envelope;
  const std::size_t headers = header_bytes(packet);
  if (headers >= packet.size()) return envelope;
  const auto payload = static_cast<std::uint32_t>(packet.size() - headers);
  envelope.packets = (payload + offload.gso_size - 1) / offload.gso_size;
  envelope.wire_bytes += (envelope.packets - 1) * static_cast<std::uint32_t>(headers);
  return envelope;
}

}  // namespace tw::wan
