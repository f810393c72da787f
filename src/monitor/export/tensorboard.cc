// SPDX-License-Identifier: Apache-2.0
#include "monitor/export/tensorboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>

namespace tw::monitor {

namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  ///< Castagnoli, bits reversed

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ kPolynomial : crc >> 1;
    table[i] = crc;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kCrcTable = crc_table();

template <class Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(value); ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

// Protocol Buffers: a field is its number and wire type, then its value.
enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key_of(std::uint64_t number, WireType type) {
  return varint(number << 3 | static_cast<std::uint64_t>(type));
}

std::string bytes_field(std::uint64_t number, std::string_view bytes) {
  return key_of(number, WireType::bytes) + varint(bytes.size()) + std::string(bytes);
}

std::string double_field(std::uint64_t number, double value) {
  return key_of(number, WireType::fixed64) + little_endian(std::bit_cast<std::uint64_t>(value));
}

/// message Summary { repeated Value value = 1 } with Value { string tag = 1; float simple_value = 2 }.
std::string scalar(std::string_view tag, const std::optional<double>& value) {
  if (!value) return "";
  const std::string number =
      key_of(2, WireType::fixed32) + little_endian(std::bit_cast<std::uint32_t>(static_cast<float>(*value)));
  return bytes_field(1, bytes_field(1, tag) + number);
}

/// message Event { double wall_time = 1; int64 step = 2; Summary summary = 5 }
std::string event(double at_s, Round step, const std::string& summary) {
  if (summary.empty()) return "";
  return tfrecord(double_field(1, at_s) + key_of(2, WireType::varint) + varint(step) +
                  bytes_field(5, summary));
}

std::optional<double> ratio(const std::optional<double>& above, const std::optional<double>& below) {
  return above && below && *below > 0 ? std::optional(*above / *below) : std::nullopt;
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) crc = kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ crc >> 8;
  return std::rotr(~crc, 15) + 0xa282ead8;
}

std::string tfrecord(std::string_view bytes) {
  const std::string length = little_endian(static_cast<std::uint64_t>(bytes.size()));
  return length + little_endian(masked_crc32c(length)) + std::string(bytes) +
         little_endian(masked_crc32c(bytes));
}

std::string TensorBoardEvents::begin(double at_s) {
  return tfrecord(double_field(1, at_s) + bytes_field(3, "brain.Event:2"));
}

std::string TensorBoardEvents::take_settled(const Board& board) {
  const auto is_over = [](const BoardPeer& peer) {
    return peer.state == PeerState::left || peer.state == PeerState::lost;
  };
  const bool tells_nothing_more = board.is_over() && std::ranges::all_of(board.peers, is_over);
  if (tells_nothing_more) return take_all(board);
  return take_when(board, [&](Round, double at_s) { return at_s <= board.now_s - kSettledAfterS; });
}

std::string TensorBoardEvents::take_before(const Board& board, Round end) {
  return take_when(board, [&](Round round, double) { return round < end; });
}

std::string TensorBoardEvents::take_all(const Board& board) {
  return take_when(board, [](Round, double) { return true; });
}

std::string TensorBoardEvents::take_when(const Board& board, const Settled& settled) {
  return take_rounds(board, settled) + take_evaluations(board);
}

std::string TensorBoardEvents::take_evaluations(const Board& board) {
  std::string records;
  for (const BoardEvaluation& one : board.evaluations)
    if (evaluated_.emplace(one.round, one.name).second)
      records += event(one.at_s, one.round, scalar("evaluation/" + one.name, one.value));
  return records;
}

std::string TensorBoardEvents::take_rounds(const Board& board, const Settled& settled) {
  std::string records;
  const auto is_settled = [&](const BoardRound& round) {
    return round.committed_s && settled(round.round, *round.committed_s);
  };
  Round newest = 0;
  for (const BoardRound& round : board.rounds)
    if (is_settled(round)) newest = round.round;
  for (const BoardRound& round : board.rounds) {
    if (!is_settled(round) || round.round <= round_) continue;
    const double since_s = committed_s_ > 0 ? committed_s_ : round.begun_s;
    std::optional<double> rate;
    if (*round.committed_s > since_s)
      rate = static_cast<double>(round.samples) / (*round.committed_s - since_s);
    std::string summary = scalar("loss/batch", round.loss) + scalar("speed/samples_per_s", rate) +
                          scalar("speed/granularity", ratio(round.calc_s, round.comm_s)) +
                          scalar("speed/calc_s", round.calc_s) + scalar("speed/comm_s", round.comm_s) +
                          scalar("run/contributors", static_cast<double>(round.contributors.size()));
    if (round.round == newest)
      summary += scalar("money/usd", board.money.usd()) +
                 scalar("money/usd_per_million_samples", board.money.usd_per_million);
    records += event(*round.committed_s, round.round, summary);
    round_ = round.round;
    committed_s_ = *round.committed_s;
  }
  return records;
}

std::string tensorboard_file_name(double begun_s) {
  return fmt::format("events.out.tfevents.{:010.0f}.tradewind", std::max(0.0, std::floor(begun_s)));
}

}  // namespace tw::monitor
