// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/framing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/prng.h"
#include "host/address.h"
#include "host/tcp/admission/greeting.h"

namespace tw::host {
namespace {

using Bytes = std::vector<std::byte>;

Blob random_blob(Prng& prng, std::size_t size) {
  Bytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(prng.next());
  return size == 0 ? Blob() : Blob(std::move(bytes));
}

void append(Bytes& stream, std::span<const std::byte> bytes) {
  stream.insert(stream.end(), bytes.begin(), bytes.end());
}

void append(Bytes& stream, const Frame& frame) {
  append(stream, lengths_of(frame));
  append(stream, frame.head.bytes());
  append(stream, frame.payload.bytes());
}

bool same(const Frame& a, const Frame& b) {
  return std::ranges::equal(a.head.bytes(), b.head.bytes()) &&
         std::ranges::equal(a.payload.bytes(), b.payload.bytes());
}

/// Puts up to max bytes from the stream into the room of the parser, as a socket would.
void feed(FrameParser& parser, std::span<const std::byte>& stream, std::size_t max) {
  std::size_t given = 0;
  for (const auto& part : parser.room()) {
    const std::size_t n = std::min({part.size(), stream.size(), max - given});
    if (n > 0) std::memcpy(part.data(), stream.data(), n);
    stream = stream.subspan(n);
    given += n;
  }
  parser.filled(given);
}

TEST(FrameParser, gives_back_the_frames_however_the_bytes_are_cut) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Prng prng(seed);
    std::vector<Frame> frames;
    Bytes stream;
    append(stream, preface());
    for (int i = 0; i < 30; ++i) {
      frames.push_back({random_blob(prng, prng.below(i % 7 == 0 ? 20'000 : 50)),
                        random_blob(prng, prng.chance(0.5) ? 0 : prng.below(40'000))});
      append(stream, frames.back());
    }
    const std::uint64_t most = seed % 3 == 0 ? 7 : 30'000;
    FrameParser parser{FrameLimits{}};
    std::span<const std::byte> rest(stream);
    std::size_t found = 0;
    while (found < frames.size()) {
      auto frame = parser.next();
      ASSERT_TRUE(frame) << "seed " << seed << ": " << frame.error().message;
      if (frame.value()) {
        ASSERT_TRUE(same(*frame.value(), frames[found])) << "seed " << seed << " frame " << found;
        ++found;
      } else {
        ASSERT_FALSE(rest.empty()) << "seed " << seed;
        feed(parser, rest, 1 + prng.below(most));
      }
    }
    EXPECT_TRUE(rest.empty() && parser.between_frames()) << "seed " << seed;
  }
}

TEST(FrameParser, receives_a_large_payload_in_place) {
  FrameParser parser{FrameLimits{}};
  Prng prng(1);
  const Frame frame{{}, random_blob(prng, 100'000)};
  Bytes stream;
  append(stream, preface());
  append(stream, frame);
  std::span<const std::byte> rest(stream);
  feed(parser, rest, 100);
  ASSERT_FALSE(parser.next().value());
  const auto room = parser.room();
  EXPECT_EQ(room[1].size(), 100'000U - 84U);
  feed(parser, rest, rest.size());
  const auto received = parser.next();
  EXPECT_EQ(received.value()->payload.bytes().data() + 84, room[1].data());
}

TEST(FrameParser, refuses_lengths_beyond_the_limits_that_hold_when_they_are_read) {
  const Frame small{Blob(Bytes(10)), Blob(Bytes(20))};
  for (const auto& [limits, why] :
       {std::pair(FrameLimits{9, 20}, "announced a head of 10 bytes, the limit is 9"),
        std::pair(FrameLimits{10, 19}, "announced a payload of 20 bytes, the limit is 19")}) {
    FrameParser parser(FrameLimits{10, 20});
    Bytes stream;
    append(stream, preface());
    append(stream, small);
    append(stream, small);
    std::span<const std::byte> rest(stream);
    feed(parser, rest, stream.size());
    ASSERT_TRUE(parser.next().value());
    parser.set_limits(limits);
    const auto refused = parser.next();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, why);
  }
}

TEST(FrameParser, refuses_another_magic_and_another_version) {
  for (const std::size_t changed : {0U, 4U}) {
    Preface wrong = preface();
    wrong[changed] ^= std::byte{0x80};
    std::span<const std::byte> rest(wrong);
    FrameParser parser{FrameLimits{}};
    feed(parser, rest, rest.size());
    EXPECT_FALSE(parser.next());
  }
}

TEST(Greeting, survives_its_encoding) {
  const Greeting greeting{StreamKind::bulk,
                          Verdict::refuse,
                          PeerId{0x0123456789abcdef},
                          ~0ULL,
                          {"no thanks", world::Refusal::Code::run, PeerId{7}, 12}};
  EXPECT_EQ(decode_greeting(encode_greeting(greeting)).value(), greeting);
}

TEST(Greeting, is_refused_when_malformed_and_shows_no_control_characters) {
  const Greeting greeting{StreamKind::control, Verdict::refuse, PeerId{1}, 2, {"a\x1b[31mb\n"}};
  const Frame good = encode_greeting(greeting);
  EXPECT_EQ(decode_greeting(good).value().reason.words, "a?[31mb?");
  const auto head = good.head.bytes();
  for (std::size_t size = 0; size < head.size(); ++size) {
    EXPECT_FALSE(
        decode_greeting({Blob(Bytes(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(size))), {}}));
  }
  for (const std::size_t field : {0U, 1U, 18U}) {
    for (const int value : {field == 18 ? 7 : 0, 9}) {
      Bytes bytes(head.begin(), head.end());
      bytes[field] = static_cast<std::byte>(value);
      EXPECT_FALSE(decode_greeting({Blob(bytes), {}}));
    }
  }
}

TEST(Address, is_a_host_and_a_port) {
  EXPECT_EQ(parse_address("10.0.0.1:7000").value(), (Address{"10.0.0.1", 7000}));
  EXPECT_EQ(parse_address("node-1.example.org:0").value(), (Address{"node-1.example.org", 0}));
  EXPECT_EQ(parse_address("[fe80::1]:65535").value(), (Address{"fe80::1", 65535}));
  for (const std::string text : {"10.0.0.1:7000", "[::1]:5", "host:1"}) {
    EXPECT_EQ(to_string(parse_address(text).value()), text);
  }
  for (const std::string text :
       {"", "host", ":1", "host:", "host:x", "host:65536", "host:-1", "host:1 ", "::1:5", "[]:5"}) {
    EXPECT_FALSE(parse_address(text)) << text;
  }
}

}  // namespace
}  // namespace tw::host
