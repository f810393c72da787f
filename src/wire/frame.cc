// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.h"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <set>
#include <type_traits>

#include "base/check.h"

namespace tw::wire {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the wire format is written for little-endian machines");

template <class T>
concept Scalar = std::integral<T> || std::floating_point<T> || std::is_enum_v<T>;

template <class T>
concept Bulk = requires(T& message) {
  message.payload;
};

constexpr std::size_t kUsualHeadBytes = 128;  // a heartbeat, a vote, the head of a segment

class Writer {
 public:
  Writer() { bytes_.reserve(kUsualHeadBytes); }

  template <class... Fields>
  void operator()(const Fields&... fields) {
    (put(fields), ...);
  }

  /// Names are for other formats.
  template <std::size_t N, class Field>
  void operator()(const char (&)[N], const Field& field) {
    put(field);
  }

  /// A flag, and in its byte whether the item is there that follows it: one that is not takes no byte.
  template <class T>
  void flag_before(bool flag, const std::optional<T>& item) {
    put(static_cast<std::uint8_t>((flag ? 1 : 0) | (item ? 2 : 0)));
    if (item) put(*item);
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  template <Scalar T>
  void put(T value) {
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), raw, raw + sizeof value);
  }

  void put_size(std::size_t size) {
    TW_CHECK(size <= UINT32_MAX);
    put(static_cast<std::uint32_t>(size));
  }

  void put(const Digest& d) { (*this)(d.high, d.low); }

  void put(PeerId peer) { put(peer.value); }

  void put(const std::string& text) {
    put_size(text.size());
    const auto raw = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }

  void put(const Marks& marks) {
    put(static_cast<std::uint8_t>((marks.founds ? 1 : 0) | (marks.anchor ? 2 : 0)));
  }

  void put(const StepId& step) { (*this)(step.round, step.after); }

  void put(const Range& range) { (*this)(range.first, range.count); }

  void put(const RangeSet& set) { put(set.ranges()); }

  template <class T>
  void put(const std::vector<T>& items) {
    put_size(items.size());
    for (const T& item : items) put(item);
  }

  template <class T>
  void put(const std::optional<T>& item) {
    put(item.has_value());
    if (item) put(*item);
  }

  template <class T>

  requires requires(const T& t, Writer& w) { T::fields(t, w); }

  void put(const T& message) { T::fields(message, *this); }

  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class... Fields>
  void operator()(Fields&... fields) {
    (get(fields), ...);
  }

  template <std::size_t N, class Field>
  void operator()(const char (&)[N], Field& field) {
    get(field);
  }

  template <class T>
  void flag_before(bool& flag, std::optional<T>& item) {
    std::uint8_t raw = 0;
    get(raw);
    if (raw > 3) failed_ = true;
    flag = (raw & 1) != 0;
    item.reset();
    if ((raw & 2) != 0 && !failed_) get(item.emplace());
  }

  bool finished() const { return !failed_ && rest_.empty(); }

 private:
  template <Scalar T>
  void get(T& value) {
    if (failed_ || rest_.size() < sizeof value) {
      failed_ = true;
      return;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
  }

  void get(bool& value) {
    std::uint8_t raw = 0;
    get(raw);
    if (raw > 1) failed_ = true;
    value = raw == 1;
  }

  void get(Marks& marks) {
    std::uint8_t raw = 0;
    get(raw);
    if (raw > 3) failed_ = true;
    marks = {.founds = (raw & 1) != 0, .anchor = (raw & 2) != 0};
  }

  void get(PeerState& value) { get_enum(value, PeerState::leaving); }

  void get(StallCause& value) { get_enum(value, StallCause::send_again); }

  void get(Doing& value) { get_enum(value, Doing::lost); }

  void get(Outlook& value) { get_enum(value, Outlook::leaves); }

  void get(Presence& value) { get_enum(value, Presence::full); }

  void get(ObjectKind& value) { get_enum(value, ObjectKind::mean); }

  template <class E>
  void get_enum(E& value, E last) {
    std::underlying_type_t<E> raw{};
    get(raw);
    if (raw > static_cast<std::underlying_type_t<E>>(last)) {
      failed_ = true;
      return;
    }
    value = static_cast<E>(raw);
  }

  void get(Digest& d) { (*this)(d.high, d.low); }

  void get(PeerId& peer) { get(peer.value); }

  void get(std::string& text) {
    std::uint32_t size = 0;
    get(size);
    if (failed_ || size > kMostMessageTextBytes || size > rest_.size()) {
      failed_ = true;
      return;
    }
    text.assign(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
  }

  void get(StepId& step) { (*this)(step.round, step.after); }

  void get(Range& range) { (*this)(range.first, range.count); }

  /// A record whose samples stay within range, so that no count of them can wrap around.
  void get(Record& record) {
    Record::fields(record, *this);
    const auto is_before = [&](const RangeSet& samples) {
      return samples.empty() || samples.ranges().back().end() <= record.first_sample;
    };
    const bool apart = !record.carried.intersects(record.left);
    if (!is_before(record.carried) || !is_before(record.left) || !apart ||
        std::max(record.first_sample, record.samples) > UINT64_MAX / 2)
      failed_ = true;
    if (!failed_ && record.majority_samples > record.samples_total()) failed_ = true;
    std::set<PeerId> ids;
    for (const Member& member : record.members) failed_ = failed_ || !ids.insert(member.peer).second;
  }

  void get(BatchChoice& batch) {
    BatchChoice::fields(batch, *this);
    const auto is_measured = [](double value) { return value >= 0 && value <= kMostBytesPerS; };
    if (!is_measured(batch.averaging_s) || !is_measured(batch.samples_per_s) ||
        std::max({batch.samples, batch.next, batch.at_once}) > UINT64_MAX / 2)
      failed_ = true;
  }

  void get(Member& member) {
    Member::fields(member, *this);
    if (member.site.size() > kMostSiteBytes) failed_ = true;
  }

  void get(RangeSet& set) {
    std::vector<Range> ranges;
    get(ranges);
    if (failed_ || !set.adopt(std::move(ranges))) failed_ = true;
  }

  template <class T>
  void get(std::vector<T>& items) {
    std::uint32_t size = 0;
    get(size);
    // Each item takes at least four bytes here, so memory stays in proportion to the bytes that arrived.
    if (failed_ || size > rest_.size() / 4) {
      failed_ = true;
      return;
    }
    items.clear();
    for (std::uint32_t i = 0; i < size && !failed_; ++i) get(items.emplace_back());
  }

  template <class T>
  void get(std::optional<T>& item) {
    bool there = false;
    get(there);
    if (there && !failed_) get(item.emplace());
  }

  template <class T>

  requires requires(T& t, Reader& r) { T::fields(t, r); }

  void get(T& message) { T::fields(message, *this); }

  std::span<const std::byte> rest_;
  bool failed_ = false;
};

template <class T>
Result<Message> decode_as(const Frame& frame) {
  T message;
  Reader reader(frame.head.bytes().subspan(1));
  reader(message);
  if constexpr (std::is_same_v<T, Hello>) {
    if (message.site.size() > kMostSiteBytes) return Error{"Hello: a site of more than 64 bytes"};
    if (message.facts.size() > kMostFacts) return Error{"Hello: more than 4096 facts"};
  }
  if (!reader.finished())
    return Error{std::string(name_of(message)) + ": truncated, too long or out of range"};
  if constexpr (Bulk<T>) {
    message.payload = frame.payload;
  } else if (!frame.payload.empty()) {
    return Error{std::string(name_of(message)) + ": unexpected payload"};
  }
  return Message(std::move(message));
}

using Decoder = Result<Message> (*)(const Frame&);

template <std::size_t... I>
constexpr auto make_decoders(std::index_sequence<I...>) {
  return std::array<Decoder, sizeof...(I)>{&decode_as<std::variant_alternative_t<I, Message>>...};
}

constexpr std::size_t kTypes = std::variant_size_v<Message>;
constexpr auto kDecoders = make_decoders(std::make_index_sequence<kTypes>{});
constexpr std::array<const char*, kTypes> kNames = {
    "Hello",     "Peers",       "Heartbeat",  "Progress", "Lease",         "Recall",
    "Plan",      "Vote",        "Prepare",    "Promise",  "Commit",        "Report",
    "HandOver",  "Entrust",     "Scatter",    "Gather",   "EntrustedSum",  "BandwidthReport",
    "ObjectAsk", "ObjectOffer", "ObjectGone", "ChunkAsk", "Chunk",         "SyncDone",
    "Padding",   "Status",      "Failures",   "Stop",     "AskCheckpoint", "HeldCheckpoint"};

std::uint64_t name_of_set(Round round, const std::vector<Contribution>& contributors) {
  Writer writer;
  writer(round, contributors);
  const std::vector<std::byte> bytes = writer.take();
  return tw::digest_of(std::span<const std::byte>(bytes)).low;
}

}  // namespace

Frame encode(const Message& message) {
  Writer writer;
  writer(static_cast<std::uint8_t>(message.index()));
  Frame frame;
  std::visit(
      [&]<class T>(const T& m) {
        T::fields(m, writer);
        if constexpr (Bulk<const T>) frame.payload = m.payload;
      },
      message);
  frame.head = Blob(writer.take());
  return frame;
}

Result<Message> decode(const Frame& frame) {
  const auto head = frame.head.bytes();
  if (head.empty()) return Error{"empty message"};
  if (head.size() > kMaxHeadBytes || frame.payload.size() > kMaxPayloadBytes)
    return Error{"message beyond the limit"};
  const auto type = static_cast<std::size_t>(head[0]);
  if (type >= kTypes) return Error{"unknown message type " + std::to_string(type)};
  return kDecoders[type](frame);
}

std::optional<std::uint32_t> protocol_of(const Frame& hello) {
  static_assert(std::is_same_v<std::variant_alternative_t<0, Message>, Hello>);
  const auto head = hello.head.bytes();
  std::uint32_t version = 0;
  if (head.size() < 1 + sizeof version || head[0] != std::byte{0}) return std::nullopt;
  std::memcpy(&version, &head[1], sizeof version);
  return version;
}

Digest digest_of(const Record& record) {
  Writer writer;
  writer(record);
  const std::vector<std::byte> bytes = writer.take();
  return tw::digest_of(std::span<const std::byte>(bytes));
}

std::uint64_t contribution_set(const Record& record) {
  std::vector<std::uint32_t> groups;
  for (const Contribution& c : record.contributors) groups.push_back(c.group);
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  std::vector<Contribution> set = record.contributors;
  for (Contribution& c : set) {
    const auto place = std::lower_bound(groups.begin(), groups.end(), c.group);
    c.group = static_cast<std::uint32_t>(place - groups.begin());
  }
  return name_of_set(record.round, set);
}

std::uint64_t contribution_set(const Record& record, std::uint32_t group) {
  std::vector<Contribution> set;
  for (const Contribution& c : record.contributors) {
    if (c.group == group) set.emplace_back(c).group = 0;
  }
  return name_of_set(record.round, set);
}

const char* name_of(const Message& message) { return kNames[message.index()]; }

}  // namespace tw::wire
