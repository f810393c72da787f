// SPDX-License-Identifier: Apache-2.0
#include "wan/packet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tw::wan {
namespace {

/// IPv4 and TCP with `options` bytes of TCP options and payload; gso_size 0: one packet.
std::vector<std::byte> tcp_frame(std::size_t payload, std::uint16_t gso_size, std::size_t options = 12) {
  std::vector<std::byte> frame(kVnetHeader + 20 + 20 + options + payload);
  frame[1] = gso_size == 0 ? std::byte{0} : std::byte{1};
  frame[4] = static_cast<std::byte>(gso_size & 255);
  frame[5] = static_cast<std::byte>(gso_size >> 8);
  const auto packet = std::span(frame).subspan(kVnetHeader);
  packet[0] = std::byte{0x45};
  packet[9] = std::byte{6};
  const std::uint8_t ends[] = {10, 77, 1, 1, 10, 77, 2, 3};
  std::transform(std::begin(ends), std::end(ends), packet.begin() + 12, [](auto b) { return std::byte{b}; });
  packet[32] = static_cast<std::byte>((20 + options) / 4 << 4);
  return frame;
}

TEST(Envelope, knows_the_ends_and_the_bytes_of_a_packet) {
  EXPECT_EQ(read_envelope(tcp_frame(1448, 0)),
            (Envelope{.source = 0x0a4d0101, .destination = 0x0a4d0203, .packets = 1, .wire_bytes = 1500}));
}

TEST(Envelope, counts_the_headers_of_every_packet_that_a_burst_stands_for) {
  const auto envelope = read_envelope(tcp_frame(10 * 1448 + 1, 1448));
  ASSERT_TRUE(envelope);
  EXPECT_EQ(envelope->packets, 11u);
  EXPECT_EQ(envelope->wire_bytes, 10u * 1500 + 53);
}

TEST(Envelope, is_refused_for_what_is_no_whole_ipv4_packet) {
  auto frame = tcp_frame(100, 0);
  EXPECT_FALSE(read_envelope(std::span(frame).first(kVnetHeader + 19)));
  EXPECT_FALSE(read_envelope({}));
  frame[kVnetHeader] = std::byte{0x60};
  EXPECT_FALSE(read_envelope(frame));
}

TEST(Envelope, of_a_burst_cut_within_its_headers_is_that_of_one_packet) {
  const auto frame = tcp_frame(0, 1448, 40);
  for (std::size_t size = kVnetHeader + 20; size <= frame.size(); ++size) {
    const auto envelope = read_envelope(std::span(frame).first(size));
    ASSERT_TRUE(envelope) << size;
    EXPECT_EQ(envelope->wire_bytes, size - kVnetHeader);
  }
}

}  // namespace
}  // namespace tw::wan
