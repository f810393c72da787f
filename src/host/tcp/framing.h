// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/blob.h"
#include "base/result.h"
#include "wire/frame.h"

namespace tw::host {

/// The prefix of a frame: length of the head, length of the payload, each u32 little-endian.
using FrameLengths = std::array<std::byte, 8>;

FrameLengths lengths_of(const Frame& frame);

/// The first bytes of every stream in both directions: four bytes of magic, then the version of the streams
/// as u32 little-endian. After them come frames.
using Preface = std::array<std::byte, 8>;

Preface preface();

/// Sent instead by a peer with TLS to one without.
Preface tls_preface();

/// The first bytes of one who speaks HTTP, and what is said of it.
inline constexpr std::string_view kHttpBegin = "HTTP";
inline constexpr std::string_view kSpeaksHttp =
    "a web server answers there, not a peer; dial the port of a peer, not of a page (--watch) or a proxy";

struct FrameLimits {
  std::size_t head_bytes = wire::kMaxHeadBytes;
  std::size_t payload_bytes = wire::kMaxPayloadBytes;
};

/// Cuts the bytes of one stream into frames. Large heads and payloads are received in place: room() points
/// into the vectors that become their Blobs; what follows them goes to a small read-ahead buffer.
class FrameParser {
 public:
  explicit FrameParser(FrameLimits limits) : limits_(limits), ahead_(kAheadBytes) {}

  /// Where the next bytes of the stream go, in this order. Valid until next() or filled().
  using Room = std::array<std::span<std::byte>, 3>;
  Room room();

  /// Reports bytes put into the last room().
  void filled(std::size_t bytes);

  /// A whole frame; nothing when more bytes are needed; or the error of the stream, found before anything is
  /// allocated for it. After an error the parser must not be used.
  Result<std::optional<Frame>> next();

  /// Applies to frames whose lengths are not parsed yet.
  void set_limits(FrameLimits limits) { limits_ = limits; }

  /// The error was that the other side speaks TLS.
  bool met_tls() const { return stage_ == Stage::tls; }

  /// The stream ends well only between frames.
  bool between_frames() const { return stage_ != Stage::body && begin_ == end_; }

 private:
  // A small read-ahead keeps copies small (3 % of 256 KiB), and still takes dozens of control messages at
  // once.
  static constexpr std::size_t kAheadBytes = 8 << 10;

  enum class Stage { preface, lengths, body, tls };

  std::optional<FrameLengths> take_eight();
  void copy_from_ahead(std::span<std::byte> to, std::size_t& have);

  FrameLimits limits_;
  Stage stage_ = Stage::preface;
  std::vector<std::byte> ahead_;
  std::size_t begin_ = 0;  // of the bytes in ahead_ that are not parsed yet
  std::size_t end_ = 0;
  Buffer head_;
  Buffer payload_;
  std::size_t head_have_ = 0;
  std::size_t payload_have_ = 0;
};

}  // namespace tw::host
