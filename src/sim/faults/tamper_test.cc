// SPDX-License-Identifier: Apache-2.0
#include "sim/faults/tamper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "wire/frame.h"

namespace tw::sim {
namespace {

using codec::Codec;
using wire::Scatter;

constexpr int kMany = 400;

Blob encoded(Codec codec, std::vector<float> values) {
  std::vector<std::byte> bytes(encoded_bytes(codec, values.size()));
  encode(codec, values, 1.0F, bytes);
  return Blob(std::move(bytes));
}

std::vector<float> values_of(Codec codec, const Frame& frame) {
  const wire::Message message = wire::decode(frame).value();
  const Blob payload = std::get<Scatter>(message).payload;
  std::vector<float> values(values_in(codec, payload.size()));
  (void)decode(codec, payload.bytes(), values);
  return values;
}

bool same(const Frame& a, const Frame& b) {
  return std::ranges::equal(a.head.bytes(), b.head.bytes()) &&
         std::ranges::equal(a.payload.bytes(), b.payload.bytes());
}

wire::Progress progress_of(Round round) {
  wire::Progress progress;
  progress.round = round;
  progress.slots = {{0, RangeSet({4, 2}), RangeSet({6, 4})}};
  return progress;
}

/// One of each sort that a session sends.
std::vector<wire::Message> some_of_all(Round round) {
  wire::Commit commit;
  commit.record.round = round;
  return {Scatter{{round}, 0, 1, encoded(Codec::fp32, {1, -2, 0, 3})},
          wire::Gather{{round}, 0, 1, 7, 1, encoded(Codec::fp32, {5, 6})},
          wire::Chunk{{wire::ObjectKind::state, round}, 2, encoded(Codec::fp32, {8})},
          progress_of(round),
          wire::Vote{{round}, 1, 2, {}},
          wire::Lease{round, 1, 0, RangeSet({0, 3})},
          wire::ChunkAsk{{wire::ObjectKind::mean, round}, 1},
          wire::Heartbeat{},
          wire::Peers{},
          commit};
}

struct Struck {
  wire::Message before;
  std::vector<Frame> after;
};

/// The messages that came out otherwise than they went in.
std::vector<Struck> struck_by(Tamper& tamper) {
  std::vector<Struck> struck;
  for (int i = 0; i < kMany; ++i) {
    for (const wire::Message& message : some_of_all(static_cast<Round>(i + 5))) {
      const Frame before = encode(message);
      std::vector<Frame> after = tamper(before);
      if (after.size() == 1 && same(after.front(), before)) continue;
      struck.push_back({message, std::move(after)});
    }
  }
  EXPECT_EQ(tamper.struck(), std::ssize(struck));
  return struck;
}

void expect_some_of(std::size_t struck, int eligible) {
  EXPECT_NEAR(static_cast<double>(struck), Tamper::kChance * eligible, 0.1 * eligible);
}

bool fits(FaultKind kind, float before, float after) {
  switch (kind) {
    case FaultKind::send_nan:
      return std::isnan(after);
    case FaultKind::send_infinite:
      return std::isinf(after);
    case FaultKind::send_huge:
      return std::isfinite(after) && std::fabs(after) >= 1e3F;
    default:
      return after == -before;
  }
}

class TamperWithValues : public testing::TestWithParam<std::tuple<FaultKind, Codec>> {};

TEST_P(TamperWithValues, changes_one_or_all_of_a_contribution) {
  const auto [kind, codec] = GetParam();
  const std::vector<float> original{1, -2, 0.5F, 3};
  const Frame before = encode(Scatter{{3}, 1, 2, encoded(codec, original)});
  Tamper tamper(kind, codec, 1);
  int one = 0, all = 0;
  for (int i = 0; i < kMany; ++i) {
    const std::vector<Frame> after = tamper(before);
    ASSERT_EQ(after.size(), 1U);
    ASSERT_TRUE(std::ranges::equal(after[0].head.bytes(), before.head.bytes()));
    const std::vector<float> values = values_of(codec, after[0]);
    ASSERT_EQ(values.size(), original.size());
    std::size_t changed = 0;
    for (std::size_t v = 0; v < values.size(); ++v) {
      if (values[v] == original[v]) continue;
      ++changed;
      EXPECT_TRUE(fits(kind, original[v], values[v])) << values[v];
    }
    EXPECT_TRUE(changed == 0 || changed == 1 || changed == original.size());
    one += changed == 1 ? 1 : 0;
    all += changed == original.size() ? 1 : 0;
  }
  EXPECT_EQ(tamper.struck(), one + all);
  expect_some_of(static_cast<std::size_t>(one + all), kMany);
  EXPECT_GT(all, 20);
}

INSTANTIATE_TEST_SUITE_P(Kinds, TamperWithValues,
                         testing::Combine(testing::Values(FaultKind::send_nan, FaultKind::send_infinite,
                                                          FaultKind::send_huge, FaultKind::send_negated),
                                          testing::Values(Codec::fp32, Codec::fp16, Codec::bf16)));

TEST(Tamper, negates_blocks_exactly) {
  for (const Codec codec : {Codec::int8, Codec::int4}) {
    const Frame before = encode(Scatter{{3}, 1, 2, encoded(codec, {1, -2.3F, 0.5F, 3.1F})});
    const std::vector<float> original = values_of(codec, before);
    Tamper tamper(FaultKind::send_negated, codec, 1);
    for (int i = 0; i < kMany; ++i) {
      const std::vector<float> after = values_of(codec, tamper(before).front());
      if (after == original) continue;
      for (std::size_t v = 0; v < original.size(); ++v) EXPECT_EQ(after[v], -original[v]) << name_of(codec);
    }
    EXPECT_GT(tamper.struck(), 0);
  }
}

TEST(Tamper, leaves_everything_but_contributions_when_it_lies_about_values) {
  Tamper tamper(FaultKind::send_nan, Codec::fp32, 2);
  const std::vector<Struck> struck = struck_by(tamper);
  for (const Struck& one : struck) EXPECT_TRUE(std::holds_alternative<Scatter>(one.before));
  expect_some_of(struck.size(), kMany);
}

TEST(Tamper, leaves_a_payload_that_the_codec_cannot_have_written) {
  Tamper tamper(FaultKind::send_nan, Codec::fp32, 3);
  const Frame odd = encode(Scatter{{1}, 0, 0, Blob(std::vector<std::byte>(7))});
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(same(tamper(odd).front(), odd));
}

TEST(Tamper, claims_microbatches_that_nobody_leased) {
  Tamper tamper(FaultKind::claim_more, Codec::fp32, 4);
  int absurd = 0;
  const std::vector<Struck> struck = struck_by(tamper);
  for (const Struck& one : struck) {
    const wire::Progress before = std::get<wire::Progress>(one.before);
    wire::Progress after = std::get<wire::Progress>(wire::decode(one.after.at(0)).value());
    EXPECT_TRUE(after.slots[0].done.contains(before.slots[0].done));
    EXPECT_GT(after.slots[0].done.count(), before.slots[0].done.count());
    EXPECT_FALSE(after.slots[0].done.intersects(after.slots[0].held));
    absurd += after.slots[0].done.count() == 10'000 ? 1 : 0;
    after.slots = before.slots;
    EXPECT_EQ(after, before);
  }
  expect_some_of(struck.size(), kMany);
  EXPECT_GT(absurd, 20);
  EXPECT_LT(absurd, static_cast<int>(struck.size()) - 20);
}

TEST(Tamper, claims_work_of_a_round_in_which_it_has_none) {
  Tamper tamper(FaultKind::claim_more, Codec::fp32, 5);
  Frame after;
  while (tamper.struck() == 0) after = tamper(encode(wire::Progress{})).front();
  EXPECT_EQ(std::get<wire::Progress>(wire::decode(after).value()).slots.at(0).done.count(), 1U);
}

TEST(Tamper, replays_older_messages_of_the_same_priority_after_newer_ones) {
  Tamper tamper(FaultKind::replay, Codec::fp32, 6);
  std::size_t of_earlier_rounds = 0;
  const std::vector<Struck> struck = struck_by(tamper);
  for (const Struck& one : struck) {
    ASSERT_EQ(one.after.size(), 2U);
    EXPECT_TRUE(same(one.after[0], encode(one.before)));
    const wire::Message again = wire::decode(one.after[1]).value();
    EXPECT_FALSE(std::holds_alternative<wire::Heartbeat>(again) ||
                 std::holds_alternative<wire::Peers>(again));
    EXPECT_EQ(one.after[1].payload.empty(), one.after[0].payload.empty());
    const auto* older = std::get_if<Scatter>(&again);
    const auto* newer = std::get_if<Scatter>(&one.before);
    if (older != nullptr && newer != nullptr)
      of_earlier_rounds += older->step.round < newer->step.round ? 1 : 0;
  }
  expect_some_of(struck.size(), kMany * 10);
  EXPECT_GT(of_earlier_rounds, 20U);
}

TEST(Tamper, sends_twice) {
  Tamper tamper(FaultKind::duplicate, Codec::fp32, 7);
  const std::vector<Struck> struck = struck_by(tamper);
  for (const Struck& one : struck) {
    ASSERT_EQ(one.after.size(), 2U);
    EXPECT_TRUE(same(one.after[0], encode(one.before)));
    EXPECT_TRUE(same(one.after[1], encode(one.before)));
  }
  expect_some_of(struck.size(), kMany * 10);
}

TEST(Tamper, cuts_and_lengthens_payloads) {
  Tamper tamper(FaultKind::wrong_length, Codec::fp32, 8);
  int shorter = 0, longer = 0;
  for (const Struck& one : struck_by(tamper)) {
    const Frame before = encode(one.before);
    ASSERT_EQ(one.after.size(), 1U);
    EXPECT_TRUE(std::ranges::equal(one.after[0].head.bytes(), before.head.bytes()));
    (one.after[0].payload.size() < before.payload.size() ? shorter : longer) += 1;
    EXPECT_NE(one.after[0].payload.size(), before.payload.size());
  }
  expect_some_of(static_cast<std::size_t>(shorter + longer), kMany * 3);
  EXPECT_GT(shorter, 50);
  EXPECT_GT(longer, 50);
}

TEST(Tamper, names_wrong_rounds_but_forges_no_record) {
  Tamper tamper(FaultKind::wrong_round, Codec::fp32, 9);
  const std::vector<Struck> struck = struck_by(tamper);
  for (const Struck& one : struck) {
    EXPECT_FALSE(std::holds_alternative<wire::Commit>(one.before) ||
                 std::holds_alternative<wire::Heartbeat>(one.before));
    ASSERT_EQ(one.after.size(), 1U);
    wire::Message after = wire::decode(one.after[0]).value();
    std::visit(
        [&]<class T>(T& m) {
          const T& before = std::get<T>(one.before);
          if constexpr (requires { m.round; }) {
            EXPECT_NE(m.round, before.round);
            m.round = before.round;
          }
          if constexpr (requires { m.step.round; }) {
            EXPECT_NE(m.step.round, before.step.round);
            m.step.round = before.step.round;
          }
          if constexpr (requires { m.object.round; }) {
            EXPECT_NE(m.object.round, before.object.round);
            m.object.round = before.object.round;
          }
        },
        after);
    EXPECT_TRUE(same(encode(after), encode(one.before))) << "nothing else changed";
  }
  expect_some_of(struck.size(), kMany * 7);
}

TEST(Tamper, sends_bytes_that_are_no_message) {
  for (const FaultKind kind : {FaultKind::malformed, FaultKind::truncated}) {
    SCOPED_TRACE(name_of(kind));
    Tamper tamper(kind, Codec::fp32, 10);
    const std::vector<Struck> struck = struck_by(tamper);
    for (const Struck& one : struck) {
      ASSERT_EQ(one.after.size(), 1U);
      EXPECT_FALSE(wire::decode(one.after[0]).ok());
      if (kind != FaultKind::truncated) continue;
      const Frame before = encode(one.before);
      const auto whole = before.head.bytes();
      const auto rest = one.after[0].head.bytes();
      EXPECT_TRUE(rest.size() < whole.size() && std::ranges::equal(rest, whole.first(rest.size())));
    }
    expect_some_of(struck.size(), kMany * 10);
  }
}

TEST(Tamper, floods_with_segments_of_the_next_round) {
  Tamper tamper(FaultKind::flood, Codec::fp32, 13);
  const std::vector<Struck> struck = struck_by(tamper);
  for (const Struck& one : struck) {
    ASSERT_EQ(one.after.size(), 1 + Tamper::kFlood);
    EXPECT_TRUE(same(one.after[0], encode(one.before)));
    const wire::Message last = wire::decode(one.after.back()).value();
    EXPECT_EQ(std::get<Scatter>(last).step.round, std::get<Scatter>(one.before).step.round + 1);
    EXPECT_EQ(std::get<Scatter>(last).payload.size(), Tamper::kFloodBytes);
  }
  expect_some_of(struck.size(), kMany);
}

TEST(Tamper, flips_one_bit_of_a_chunk) {
  Tamper tamper(FaultKind::chunk_flip, Codec::fp32, 14);
  const std::vector<Struck> struck = struck_by(tamper);
  for (const Struck& one : struck) {
    const Frame before = encode(one.before);
    ASSERT_EQ(one.after.size(), 1U);
    EXPECT_TRUE(std::ranges::equal(one.after[0].head.bytes(), before.head.bytes()));
    int flipped = 0;
    for (std::size_t i = 0; i < before.payload.size(); ++i) {
      const std::byte changed = before.payload.bytes()[i] ^ one.after[0].payload.bytes()[i];
      flipped += std::popcount(std::to_integer<unsigned>(changed));
    }
    EXPECT_EQ(flipped, 1);
  }
  expect_some_of(struck.size(), kMany);
}

TEST(Tamper, offers_zeros_as_a_mean_with_their_digests_and_nothing_else_as_a_state) {
  const average::Geometry geometry{5, 4};
  Tamper tamper(FaultKind::forge_mean, Codec::fp32, 15, geometry);
  const wire::ObjectId mean{wire::ObjectKind::mean, 7}, state{wire::ObjectKind::state, 7};
  wire::ObjectOffer offer{mean, {}, {1, 2}, 20, {{3, 4}, {5, 6}}};
  const auto forged = [&](const wire::Message& message) {
    return wire::decode(tamper(encode(message)).front()).value();
  };
  const wire::Message offered = forged(offer);
  for (std::uint32_t s = 0; s < 2; ++s) {
    const wire::Message chunk = forged(wire::Chunk{mean, s, encoded(Codec::fp32, {8})});
    const Blob payload = std::get<wire::Chunk>(chunk).payload;
    EXPECT_EQ(payload.size(), sizeof(float) * geometry.size(s));
    EXPECT_TRUE(std::ranges::all_of(payload.bytes(), [](std::byte b) { return b == std::byte{0}; }));
    EXPECT_EQ(std::get<wire::ObjectOffer>(offered).chunks.at(s), digest_of(payload.bytes()));
  }
  offer.object = state;
  EXPECT_TRUE(same(tamper(encode(offer)).front(), encode(offer)));
  EXPECT_EQ(tamper.struck(), 3);
}

TEST(Tamper, leaves_all_when_the_fault_is_none_of_messages) {
  Tamper tamper(FaultKind::kill, Codec::fp32, 11);
  EXPECT_TRUE(struck_by(tamper).empty());
}

TEST(Tamper, does_the_same_for_the_same_seed) {
  for (const FaultRow& row : fault_rows()) {
    Tamper first(row.kind, Codec::fp32, 12), second(row.kind, Codec::fp32, 12);
    const std::vector<Struck> a = struck_by(first), b = struck_by(second);
    ASSERT_EQ(a.size(), b.size()) << row.name;
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t f = 0; f < a[i].after.size(); ++f) {
        EXPECT_TRUE(same(a[i].after[f], b[i].after[f])) << row.name;
      }
    }
  }
}

}  // namespace
}  // namespace tw::sim
