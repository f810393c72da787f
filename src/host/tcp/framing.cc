// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/framing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tw::host {
namespace {

constexpr std::uint32_t kMagic = 0x444e5754;  // "TWND"
constexpr std::uint32_t kStreamVersion = 2;
constexpr std::uint32_t kTlsVersion = 0x00534c54;  // "TLS"

using Pair = std::array<std::uint32_t, 2>;

std::array<std::byte, 8> to_bytes(Pair pair) {
  std::array<std::byte, 8> bytes{};
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(pair[i / 4] >> (8 * (i % 4)));
  return bytes;
}

Pair to_pair(const std::array<std::byte, 8>& bytes) {
  Pair pair{};
  for (std::size_t i = 0; i < 8; ++i)
    pair[i / 4] |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * (i % 4));
  return pair;
}

bool speaks_tls(const std::array<std::byte, 8>& preface) {
  const auto [magic, version] = to_pair(preface);
  const bool client_hello = (magic & 0xffff) == 0x0316;
  return client_hello || (magic == kMagic && version == kTlsVersion);
}

std::optional<Error> judge_preface(const std::array<std::byte, 8>& bytes) {
  const auto [magic, version] = to_pair(bytes);
  if (std::memcmp(bytes.data(), kHttpBegin.data(), kHttpBegin.size()) == 0)
    return Error{std::string(kSpeaksHttp)};
  if (magic != kMagic) {
    return Error{
        fmt::format("does not speak tradewind (its first bytes are {:08x})", __builtin_bswap32(magic))};
  }
  if (version != kStreamVersion) {
    return Error{
        fmt::format("speaks version {} of the streams, this peer version {}", version, kStreamVersion)};
  }
  return std::nullopt;
}

std::optional<Error> judge_lengths(Pair lengths, FrameLimits limits) {
  const auto [head, payload] = lengths;
  if (head > limits.head_bytes) {
    return Error{fmt::format("announced a head of {} bytes, the limit is {}", head, limits.head_bytes)};
  }
  if (payload > limits.payload_bytes) {
    return Error{
        fmt::format("announced a payload of {} bytes, the limit is {}", payload, limits.payload_bytes)};
  }
  return std::nullopt;
}

}  // namespace

FrameLengths lengths_of(const Frame& frame) {
  return to_bytes(
      {static_cast<std::uint32_t>(frame.head.size()), static_cast<std::uint32_t>(frame.payload.size())});
}

Preface preface() { return to_bytes({kMagic, kStreamVersion}); }

Preface tls_preface() { return to_bytes({kMagic, kTlsVersion}); }

FrameParser::Room FrameParser::room() {
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ > 0) {
    std::memmove(ahead_.data(), ahead_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  return {head_.bytes().subspan(head_have_), payload_.bytes().subspan(payload_have_),
          std::span(ahead_).subspan(end_)};
}

void FrameParser::filled(std::size_t bytes) {
  const std::size_t head = std::min(bytes, head_.size() - head_have_);
  head_have_ += head;
  bytes -= head;
  const std::size_t payload = std::min(bytes, payload_.size() - payload_have_);
  payload_have_ += payload;
  bytes -= payload;
  TW_CHECK(bytes <= ahead_.size() - end_);
  end_ += bytes;
}

std::optional<std::array<std::byte, 8>> FrameParser::take_eight() {
  FrameLengths eight{};
  if (end_ - begin_ < eight.size()) return std::nullopt;
  std::memcpy(eight.data(), ahead_.data() + begin_, eight.size());
  begin_ += eight.size();
  return eight;
}

void FrameParser::copy_from_ahead(std::span<std::byte> to, std::size_t& have) {
  const std::size_t bytes = std::min(to.size() - have, end_ - begin_);
  if (bytes == 0) return;
  std::memcpy(to.data() + have, ahead_.data() + begin_, bytes);
  have += bytes;
  begin_ += bytes;
}

Result<std::optional<Frame>> FrameParser::next() {
  if (stage_ == Stage::preface) {
    const auto eight = take_eight();
    if (!eight) return std::optional<Frame>();
    if (speaks_tls(*eight)) {
      stage_ = Stage::tls;
      return Error{
          "it speaks TLS, this peer does without (--insecure); either all peers of a run have a token or all "
          "say --insecure"};
    }
    if (auto error = judge_preface(*eight)) return *error;
    stage_ = Stage::lengths;
  }
  if (stage_ == Stage::lengths) {
    const auto eight = take_eight();
    if (!eight) return std::optional<Frame>();
    const Pair lengths = to_pair(*eight);
    if (auto error = judge_lengths(lengths, limits_)) return *error;
    head_ = Buffer(lengths[0]);
    payload_ = Buffer(lengths[1]);
    stage_ = Stage::body;
  }
  copy_from_ahead(head_.bytes(), head_have_);
  copy_from_ahead(payload_.bytes(), payload_have_);
  if (head_have_ < head_.size() || payload_have_ < payload_.size()) return std::optional<Frame>();
  Frame frame;
  if (head_.size() > 0) frame.head = Blob(std::move(head_));
  if (payload_.size() > 0) frame.payload = Blob(std::move(payload_));
  head_have_ = payload_have_ = 0;
  stage_ = Stage::lengths;
  return std::optional<Frame>(std::move(frame));
}

}  // namespace tw::host
