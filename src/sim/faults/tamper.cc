// SPDX-License-Identifier: Apache-2.0
#include "sim/faults/tamper.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "wire/frame.h"

namespace tw::sim {
namespace {

template <class T>
concept Bulk = requires(T& message) {
  message.payload;
};

template <class T>
concept NamesRound = requires(T& message) {
  message.round;
};

template <class T>
concept NamesStep = requires(T& message) {
  message.step.round;
};

template <class T>
concept NamesObject = requires(T& message) {
  message.object.round;
};

bool is_bulk(const wire::Message& message) {
  return std::visit([]<class T>(const T&) { return Bulk<T>; }, message);
}

bool names_round(const wire::Message& message) {
  return std::visit([]<class T>(const T&) { return NamesRound<T> || NamesStep<T> || NamesObject<T>; },
                    message);
}

Blob* payload_of(wire::Message& message) {
  return std::visit(
      []<class T>(T& m) -> Blob* {
        if constexpr (Bulk<T>) return &m.payload;
        return nullptr;
      },
      message);
}

/// Whether it offers a mean that was decided, or is a piece of one.
bool is_of_mean(const wire::Message& message) {
  const auto* offer = std::get_if<wire::ObjectOffer>(&message);
  const auto* chunk = std::get_if<wire::Chunk>(&message);
  return (offer != nullptr && offer->object.kind == wire::ObjectKind::mean) ||
         (chunk != nullptr && chunk->object.kind == wire::ObjectKind::mean);
}

std::uint64_t end_of(const RangeSet& set) { return set.empty() ? 0 : set.ranges().back().end(); }

}  // namespace

std::vector<Frame> Tamper::operator()(const Frame& frame) {
  const Result<wire::Message> message = wire::decode(frame);
  if (!message) return {frame};
  std::vector<Frame> out{frame};
  if (concerns(message.value()) && (kind_ == FaultKind::forge_mean || random_.chance(kChance))) {
    ++struck_;
    out = strike(frame, message.value());
  }
  keep(frame, message.value());
  return out;
}

bool Tamper::concerns(const wire::Message& message) const {
  switch (kind_) {
    case FaultKind::send_nan:
    case FaultKind::send_infinite:
    case FaultKind::send_huge:
    case FaultKind::send_negated: {
      const auto* scatter = std::get_if<wire::Scatter>(&message);
      return scatter != nullptr && !scatter->payload.empty();
    }
    case FaultKind::flood:
      return std::holds_alternative<wire::Scatter>(message);
    case FaultKind::chunk_flip: {
      const auto* chunk = std::get_if<wire::Chunk>(&message);
      return chunk != nullptr && !chunk->payload.empty();
    }
    case FaultKind::forge_mean:
      return is_of_mean(message);
    case FaultKind::claim_more:
      return std::holds_alternative<wire::Progress>(message);
    case FaultKind::wrong_length:
      return is_bulk(message);
    case FaultKind::wrong_round:
      return names_round(message);
    case FaultKind::replay:
      return !earlier_[is_bulk(message) ? 1 : 0].empty();
    case FaultKind::duplicate:
    case FaultKind::malformed:
    case FaultKind::truncated:
      return true;
    default:
      return false;
  }
}

std::vector<Frame> Tamper::strike(const Frame& frame, const wire::Message& message) {
  switch (kind_) {
    case FaultKind::replay: {
      const std::vector<Frame>& kept = earlier_[is_bulk(message) ? 1 : 0];
      return {frame, kept[random_.below(kept.size())]};
    }
    case FaultKind::duplicate:
      return {frame, frame};
    case FaultKind::flood:
      return flooded(frame, std::get<wire::Scatter>(message));
    case FaultKind::malformed:
      return {malformed()};
    case FaultKind::truncated:
      return {truncated(frame)};
    default:
      return {changed(message)};
  }
}

Frame Tamper::changed(wire::Message message) {
  if (kind_ == FaultKind::wrong_length) {
    change_length(*payload_of(message));
  } else if (kind_ == FaultKind::chunk_flip) {
    flip_bit(*payload_of(message));
  } else if (kind_ == FaultKind::forge_mean) {
    forge(message);
  } else if (kind_ == FaultKind::claim_more) {
    claim(std::get<wire::Progress>(message));
  } else if (kind_ == FaultKind::wrong_round) {
    std::visit(
        [this]<class T>(T& m) {
          if constexpr (NamesRound<T>) m.round = changed_round(m.round);
          if constexpr (NamesStep<T>) m.step.round = changed_round(m.step.round);
          if constexpr (NamesObject<T>) m.object.round = changed_round(m.object.round);
        },
        message);
  } else {
    change_values(std::get<wire::Scatter>(message));
  }
  return encode(message);
}

// Some values become what the kind says; all of them where it is the sum that lies.
void Tamper::change_values(wire::Scatter& scatter) {
  std::vector<float> values(values_in(codec_, scatter.payload.size()));
  std::vector<std::byte> bytes(encoded_bytes(codec_, values.size()));
  if (values.empty() || bytes.size() != scatter.payload.size()) return;
  (void)decode(codec_, scatter.payload.bytes(), values);
  const bool all = kind_ == FaultKind::send_negated || random_.chance(0.5);
  const std::size_t one = random_.below(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (all || i == one) values[i] = changed_value(values[i]);
  }
  encode(codec_, values, 1.0F, bytes);
  scatter.payload = Blob(std::move(bytes));
}

float Tamper::changed_value(float value) {
  using Limits = std::numeric_limits<float>;
  const float sign = random_.chance(0.5) ? 1.0F : -1.0F;
  switch (kind_) {
    case FaultKind::send_nan:
      return Limits::quiet_NaN();
    case FaultKind::send_infinite:
      return sign * Limits::infinity();
    case FaultKind::send_huge:
      // A mean over no more than 1e5 samples, where sums cross the wire, is as large.
      return sign * (random_.chance(0.5) ? (carries_sums(codec_) ? 1e9F : 1e4F) : Limits::max() / 4);
    default:
      return -value;
  }
}

void Tamper::claim(wire::Progress& progress) {
  for (const wire::SlotProgress& slot : progress.slots) {
    most_microbatches_ = std::max({most_microbatches_, end_of(slot.done), end_of(slot.held)});
  }
  if (progress.slots.empty()) progress.slots.emplace_back();
  wire::SlotProgress& slot = progress.slots[random_.below(progress.slots.size())];
  const bool plausible = random_.chance(0.5) && slot.done.count() < most_microbatches_;
  slot.done = RangeSet({0, plausible ? most_microbatches_ : 1000 * most_microbatches_});
  slot.held.remove(slot.done);
}

void Tamper::change_length(Blob& payload) {
  const auto old = payload.bytes();
  std::vector<std::byte> bytes(old.begin(), old.end());
  if (!bytes.empty() && random_.chance(0.5)) {
    bytes.resize(random_.below(bytes.size()));
  } else {
    bytes.resize(bytes.size() + 1 + random_.below(64));
  }
  payload = Blob(std::move(bytes));
}

void Tamper::flip_bit(Blob& payload) {
  std::vector<std::byte> bytes(payload.bytes().begin(), payload.bytes().end());
  bytes[random_.below(bytes.size())] ^= std::byte{1} << random_.below(8);
  payload = Blob(std::move(bytes));
}

void Tamper::forge(wire::Message& message) const {
  if (auto* chunk = std::get_if<wire::Chunk>(&message)) {
    const average::Geometry& geometry = fragments_.of(chunk->object.round).geometry;
    if (chunk->index < geometry.segments()) chunk->payload = zeros(geometry, chunk->index);
  } else if (auto* offer = std::get_if<wire::ObjectOffer>(&message)) {
    const average::Geometry& geometry = fragments_.of(offer->object.round).geometry;
    offer->chunks.clear();
    for (std::uint64_t s = 0; s < geometry.segments(); ++s)
      offer->chunks.push_back(digest_of(zeros(geometry, s).bytes()));
  }
}

Blob Tamper::zeros(const average::Geometry& geometry, std::uint64_t segment) const {
  return Blob(std::vector<std::byte>(encoded_bytes(codec_of_mean(codec_), geometry.size(segment))));
}

std::vector<Frame> Tamper::flooded(const Frame& frame, wire::Scatter scatter) {
  ++scatter.step.round;
  scatter.payload = Blob(std::vector<std::byte>(kFloodBytes));
  std::vector<Frame> out(1 + kFlood, encode(scatter));
  out.front() = frame;
  return out;
}

Round Tamper::changed_round(Round round) {
  const std::uint64_t by = 1 + random_.below(3);
  if (random_.chance(0.1)) return round ^ (random_.next() | 1U);
  return random_.chance(0.5) && round >= by ? round - by : round + by;
}

Frame Tamper::malformed() {
  for (;;) {
    std::vector<std::byte> bytes(1 + random_.below(80));
    for (std::byte& b : bytes) b = static_cast<std::byte>(random_.below(256));
    bytes.front() = static_cast<std::byte>(random_.below(std::variant_size_v<wire::Message> + 4));
    Frame junk{Blob(std::move(bytes)), {}};
    if (!wire::decode(junk).ok()) return junk;
  }
}

// A decoder reads from the front, so no proper beginning of a message is one.
Frame Tamper::truncated(const Frame& frame) {
  const auto head = frame.head.bytes();
  const auto rest = head.first(random_.below(head.size()));
  return {Blob(std::vector(rest.begin(), rest.end())), frame.payload};
}

void Tamper::keep(const Frame& frame, const wire::Message& message) {
  if (kind_ != FaultKind::replay) return;
  if (std::holds_alternative<wire::Heartbeat>(message) || std::holds_alternative<wire::Peers>(message))
    return;
  std::vector<Frame>& kept = earlier_[is_bulk(message) ? 1 : 0];
  if (kept.size() < kKept) {
    kept.push_back(frame);
  } else {
    kept[random_.below(kKept)] = frame;
  }
}

}  // namespace tw::sim
