// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <type_traits>

#include "base/prng.h"

namespace tw::wire {
namespace {

/// Fills the fields of a message with random values that are valid on the wire.
class Filler {
 public:
  explicit Filler(Prng& prng) : prng_(prng) {}

  void operator()(auto&... fields) { (fill(fields), ...); }

  template <std::size_t N>
  void operator()(const char (&)[N], auto& field) {
    fill(field);
  }

  void flag_before(bool& flag, auto& item) { (*this)(flag, item); }

 private:
  template <std::unsigned_integral T>
  void fill(T& value) {
    value = static_cast<T>(prng_.next() >> prng_.below(64));
  }

  void fill(bool& value) { value = prng_.chance(0.5); }

  void fill(double& value) { value = prng_.uniform() * 1e3; }

  void fill(PeerState& value) { value = static_cast<PeerState>(prng_.below(5)); }

  void fill(StallCause& value) { value = static_cast<StallCause>(prng_.below(7)); }

  void fill(Doing& value) { value = static_cast<Doing>(prng_.below(8)); }

  void fill(Outlook& value) { value = static_cast<Outlook>(prng_.below(3)); }

  void fill(Presence& value) { value = static_cast<Presence>(prng_.below(3)); }

  void fill(ObjectKind& value) { value = static_cast<ObjectKind>(prng_.below(2)); }

  void fill(Marks& marks) { marks = {prng_.chance(0.5), prng_.chance(0.5)}; }

  void fill(Digest& digest) { (*this)(digest.high, digest.low); }

  void fill(PeerId& peer) { fill(peer.value); }

  void fill(StepId& step) { (*this)(step.round, step.after); }

  void fill(std::string& text) {
    text.resize(prng_.below(30));
    for (char& c : text) c = static_cast<char>(prng_.next());
  }

  void fill(RangeSet& set) {
    for (std::uint64_t n = prng_.below(5); n > 0; --n) set.add(Range{prng_.below(1000), 1 + prng_.below(50)});
  }

  template <class T>
  void fill(std::vector<T>& items) {
    items.resize(prng_.below(5));
    for (T& item : items) fill(item);
  }

  template <class T>
  void fill(std::optional<T>& item) {
    if (prng_.chance(0.5)) fill(item.emplace());
  }

  void fill(BatchChoice& batch) {
    BatchChoice::fields(batch, *this);
    batch.samples >>= 1;
    batch.next >>= 1;
    batch.at_once >>= 1;
  }

  void fill(Record& record) {
    Record::fields(record, *this);
    record.carried = record.left = {};
    record.first_sample >>= 1;
    record.samples >>= 1;
    record.majority_samples %= record.samples_total() + 1;
    for (std::size_t i = 0; i < record.members.size(); ++i) record.members[i].peer.value += i << 32;
    std::ranges::sort(record.members, {}, &Member::peer);
    record.members.erase(std::ranges::unique(record.members, {}, &Member::peer).begin(),
                         record.members.end());
  }

  template <class T>

  requires requires(T& t, Filler& f) { T::fields(t, f); }

  void fill(T& message) { T::fields(message, *this); }

  Prng& prng_;
};

constexpr std::size_t kTypes = std::variant_size_v<Message>;

/// One message of every type.
template <std::size_t... I>
std::vector<Message> make_blanks(std::index_sequence<I...>) {
  return {Message(std::in_place_index<I>)...};
}

Message blank(std::size_t type) {
  static const std::vector<Message> blanks = make_blanks(std::make_index_sequence<kTypes>{});
  return blanks.at(type);
}

Message random_message(Prng& prng, std::size_t type) {
  Message message = blank(type);
  std::visit(
      [&](auto& m) {
        Filler filler(prng);
        filler(m);
        if constexpr (requires { m.payload; }) m.payload = Blob(std::vector<std::byte>(prng.below(50)));
      },
      message);
  return message;
}

std::vector<std::byte> head_of(const Frame& frame) {
  return {frame.head.bytes().begin(), frame.head.bytes().end()};
}

Frame with_head(const Frame& frame, std::vector<std::byte> head) {
  return {Blob(std::move(head)), frame.payload};
}

/// Calls check(seed, message, frame) for random messages of every type.
void for_random_messages(std::uint64_t seeds, auto&& check) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Prng prng(seed);
    for (std::size_t type = 0; type < kTypes; ++type) {
      const Message message = random_message(prng, type);
      SCOPED_TRACE(std::string(name_of(message)) + ", seed " + std::to_string(seed));
      check(prng, message, encode(message));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Frame, every_message_comes_back_as_it_was) {
  for_random_messages(200, [](Prng&, const Message& message, const Frame& frame) {
    const Result<Message> back = decode(frame);
    ASSERT_TRUE(back) << back.error().message;
    ASSERT_EQ(back.value().index(), message.index());
    std::visit(
        [&]<class T>(const T& sent) {
          if constexpr (std::equality_comparable<T>) {
            ASSERT_EQ(sent, std::get<T>(back.value()));
          }
        },
        message);
    ASSERT_EQ(head_of(encode(back.value())), head_of(frame));
  });
}

TEST(Frame, payloads_are_passed_on_and_not_copied) {
  const Blob payload(std::vector<std::byte>(100));
  const Frame frame = encode(Gather{{1}, 2, 3, 4, 5, payload});
  EXPECT_EQ(frame.payload.bytes().data(), payload.bytes().data());
  const Result<Message> back = decode(frame);
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<Gather>(back.value()).payload.bytes().data(), payload.bytes().data());
  EXPECT_LT(frame.head.size(), 64U);
}

TEST(Frame, refuses_every_truncation_and_anything_behind_the_end) {
  for_random_messages(30, [](Prng&, const Message&, const Frame& frame) {
    const std::vector<std::byte> head = head_of(frame);
    for (std::size_t size = 0; size < head.size(); ++size) {
      const auto end = head.begin() + static_cast<std::ptrdiff_t>(size);
      ASSERT_FALSE(decode(with_head(frame, {head.begin(), end}))) << size << " of " << head.size();
    }
    for (const int extra : {0, 1, 255}) {
      std::vector<std::byte> longer = head;
      longer.push_back(static_cast<std::byte>(extra));
      ASSERT_FALSE(decode(with_head(frame, longer)));
    }
  });
}

TEST(Frame, reads_flipped_bytes_as_an_error_or_as_exactly_what_they_say) {
  for_random_messages(100, [](Prng& prng, const Message&, const Frame& frame) {
    for (int trial = 0; trial < 20; ++trial) {
      std::vector<std::byte> head = head_of(frame);
      for (std::uint64_t n = 1 + prng.below(3); n > 0; --n) {
        head[prng.below(head.size())] ^= static_cast<std::byte>(1 + prng.below(255));
      }
      const Result<Message> read = decode(with_head(frame, head));
      ASSERT_TRUE(!read || head_of(encode(read.value())) == head) << "two readings of one encoding";
    }
  });
}

TEST(Frame, never_crashes_on_noise) {
  for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
    Prng prng(seed);
    std::vector<std::byte> head(prng.below(200));
    for (std::byte& b : head) b = static_cast<std::byte>(prng.chance(0.3) ? prng.next() : prng.below(3));
    if (!head.empty()) head[0] = static_cast<std::byte>(prng.below(kTypes + 1));
    const Result<Message> read = decode({Blob(head), Blob()});
    ASSERT_TRUE(!read || head_of(encode(read.value())) == head) << "seed " << seed;
  }
}

TEST(Frame, refuses_counts_beyond_what_the_bytes_can_hold) {
  const Frame frame = encode(Peers{});
  for (const std::uint32_t count : {1U, 1000U, 0x40000000U, 0xffffffffU}) {
    std::vector<std::byte> head = head_of(frame);
    ASSERT_EQ(head.size(), 5U);
    std::memcpy(&head[1], &count, sizeof count);
    EXPECT_FALSE(decode(with_head(frame, head))) << count;
  }
}

TEST(Frame, refuses_values_out_of_their_range) {
  std::vector<std::byte> head = head_of(encode(Heartbeat{}));
  head[1] = std::byte{5};  // the state of the peer
  EXPECT_FALSE(decode({Blob(head), Blob()}));
  head = head_of(encode(ObjectAsk{}));
  head[1] = std::byte{2};  // kind
  EXPECT_FALSE(decode({Blob(head), Blob()}));
  head = head_of(encode(StallReport{}));
  head.back() = std::byte{5};  // cause
  EXPECT_FALSE(decode({Blob(head), Blob()}));
  Record record;
  record.last = true;
  head = head_of(encode(Commit{record}));
  head.back() = std::byte{2};
  EXPECT_FALSE(decode({Blob(head), Blob()})) << "a bool is 0 or 1";
  record.first_sample = UINT64_MAX / 2;
  record.carried = RangeSet(Range{UINT64_MAX / 2 - 3, 3});
  EXPECT_TRUE(decode(encode(Commit{record})));
  ++record.first_sample;
  EXPECT_FALSE(decode(encode(Commit{record}))) << "its samples could end beyond the numbers";
  record.first_sample = 100;
  EXPECT_FALSE(decode(encode(Commit{record}))) << "what it carries is not of earlier rounds";
  record.carried = {};
  record.majority_samples = 100;
  EXPECT_TRUE(decode(encode(Commit{record})));
  ++record.majority_samples;
  EXPECT_FALSE(decode(encode(Commit{record}))) << "a majority decided more samples than there are";
  record.majority_samples = 100;
  record.members = {{PeerId{1}, "here:1", 1}, {PeerId{2}, "here:2", 2}};
  EXPECT_TRUE(decode(encode(Commit{record})));
  record.members.push_back({PeerId{1}, "here:3", 3});
  EXPECT_FALSE(decode(encode(Commit{record}))) << "two processes of one id are members";
}

TEST(Frame, refuses_what_is_too_long_empty_unknown_or_has_a_payload_it_should_not_have) {
  EXPECT_FALSE(decode(Frame{}));
  EXPECT_FALSE(decode({Blob(std::vector<std::byte>{static_cast<std::byte>(kTypes)}), Blob()}));
  const Blob small(std::vector<std::byte>(1));
  EXPECT_FALSE(decode({encode(Recall{}).head, small}));
  const Blob huge(std::vector<std::byte>(kMaxPayloadBytes + 1));
  EXPECT_FALSE(decode(encode(Gather{{1}, 1, 1, 1, 1, huge})));
  const Hello wordy{.address = std::string(5000, 'x')};
  EXPECT_FALSE(decode(encode(wordy))) << "texts end at 4096 bytes";
  const std::string place(kMostSiteBytes, 'x');
  EXPECT_TRUE(decode(encode(Hello{.site = place})));
  EXPECT_FALSE(decode(encode(Hello{.site = place + "x"})));
  EXPECT_TRUE(decode(encode(Hello{.facts = std::vector<std::uint32_t>(kMostFacts)})));
  EXPECT_FALSE(decode(encode(Hello{.facts = std::vector<std::uint32_t>(kMostFacts + 1)})));
  EXPECT_TRUE(decode(encode(Peers{{{PeerId{1}, "here:1", 1, place}}})));
  EXPECT_FALSE(decode(encode(Peers{{{PeerId{1}, "here:1", 1, place + "x"}}})));
  Peers crowd;
  crowd.peers.resize(kMaxHeadBytes / 12 + 1);
  EXPECT_FALSE(decode(encode(crowd))) << "beyond kMaxHeadBytes";
}

TEST(Frame, spends_no_byte_on_a_batch_that_nobody_chose) {
  Record record;
  const std::size_t plain = encode(Commit{record}).head.size();
  for (const bool had_company : {false, true}) {
    record.had_company = had_company;
    record.batch.reset();
    EXPECT_EQ(encode(Commit{record}).head.size(), plain);
    record.batch = BatchChoice{64, 128, 0.5, 1e3, 32};
    EXPECT_EQ(encode(Commit{record}).head.size(), plain + 40);
    const auto commit = decode(encode(Commit{record}));
    ASSERT_TRUE(commit.ok());
    EXPECT_EQ(std::get<Commit>(commit.value()).record, record);
  }
}

TEST(Frame, refuses_a_batch_that_nobody_can_have_measured) {
  const auto is_taken = [](const BatchChoice& batch) {
    Record record;
    record.batch = batch;
    return decode(encode(Commit{record})).ok();
  };
  EXPECT_TRUE(is_taken({.samples = UINT64_MAX / 2, .averaging_s = 0, .samples_per_s = kMostBytesPerS}));
  EXPECT_FALSE(is_taken({.samples = UINT64_MAX / 2 + 1}));
  EXPECT_FALSE(is_taken({.next = UINT64_MAX}));
  EXPECT_FALSE(is_taken({.averaging_s = -1}));
  EXPECT_FALSE(is_taken({.averaging_s = std::nan("")}));
  EXPECT_FALSE(is_taken({.samples_per_s = HUGE_VAL}));
}

TEST(Hello, says_in_one_byte_whether_it_founds_the_run_and_whether_it_is_an_anchor) {
  const std::size_t plain = encode(Hello{}).head.size();
  for (const Marks marks : {Marks{}, Marks{.founds = true}, Marks{.anchor = true}, Marks{true, true}}) {
    const Frame frame = encode(Hello{.marks = marks});
    EXPECT_EQ(frame.head.size(), plain);
    const auto hello = decode(frame);
    ASSERT_TRUE(hello.ok());
    EXPECT_EQ(std::get<Hello>(hello.value()).marks, marks);
  }
  const Frame frame = encode(Hello{});
  std::vector<std::byte> bytes(frame.head.bytes().begin(), frame.head.bytes().end());
  bytes[bytes.size() - 5] = std::byte{4};  // before the number of facts
  EXPECT_FALSE(decode(Frame{Blob(bytes), {}}));
}

TEST(Frame, every_type_has_its_own_name) {
  std::set<std::string> names;
  for (std::size_t type = 0; type < kTypes; ++type) names.insert(name_of(blank(type)));
  EXPECT_EQ(names.size(), kTypes);
  EXPECT_STREQ(name_of(Hello{}), "Hello");
  EXPECT_STREQ(name_of(ObjectGone{}), "ObjectGone");
  EXPECT_STREQ(name_of(SyncDone{}), "SyncDone");
}

TEST(ContributionSet, depends_on_contributors_their_order_samples_and_microbatches_alone) {
  Record record;
  record.round = 3;
  record.contributors = {{PeerId{1}, 0, 32, RangeSet(Range{0, 2})},
                         {PeerId{2}, 0, 32, RangeSet(Range{2, 2})}};
  const std::uint64_t set = contribution_set(record);
  Record other = record;
  other.members = {{PeerId{1}, "here:1"}};
  other.samples = 64;
  other.mean = {1, 2};
  EXPECT_EQ(contribution_set(other), set);
  EXPECT_NE(digest_of(other), digest_of(record));
  const auto changed = [&](auto&& change) {
    other = record;
    change(other);
    return contribution_set(other) != set;
  };
  EXPECT_TRUE(changed([](Record& r) { r.round = 4; }));
  EXPECT_TRUE(changed([](Record& r) { std::swap(r.contributors[0], r.contributors[1]); }));
  EXPECT_TRUE(changed([](Record& r) { r.contributors.pop_back(); }));
  EXPECT_TRUE(changed([](Record& r) { r.contributors[0].slot = 1; }));
  EXPECT_TRUE(changed([](Record& r) { r.contributors[0].samples = 31; }));
  EXPECT_TRUE(changed([](Record& r) { r.contributors[0].microbatches.add(Range{9, 1}); }));
  EXPECT_TRUE(changed([](Record& r) { r.contributors[1].group = 1; }));
}

TEST(ContributionSet, depends_on_who_is_in_a_group_with_whom_and_not_on_the_numbers_of_groups) {
  Record record;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    record.contributors.push_back({PeerId{id}, 0, 32, RangeSet(Range{id, 1}), id < 3 ? 2U : 5U});
  }
  Record other = record;
  for (Contribution& c : other.contributors) c.group = c.group == 5 ? 1 : 0;
  EXPECT_EQ(contribution_set(other), contribution_set(record));
  EXPECT_EQ(contribution_set(other, 1), contribution_set(record, 5));
  EXPECT_NE(contribution_set(record, 2), contribution_set(record, 5));
  Record without = record;
  without.contributors.pop_back();
  EXPECT_EQ(contribution_set(without, 2), contribution_set(record, 2)) << "another group has changed";
  EXPECT_EQ(contribution_set(without), contribution_set(record, 2)) << "one group is all there is";
  for (Contribution& c : other.contributors) c.group = 1 - c.group;
  EXPECT_NE(contribution_set(other), contribution_set(record)) << "groups in another order";
}

}  // namespace
}  // namespace tw::wire
