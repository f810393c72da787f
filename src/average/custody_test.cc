// SPDX-License-Identifier: Apache-2.0
#include "average/custody.h"

#include <gmock/gmock.h>

#include <limits>

namespace tw::average {
namespace {

constexpr Geometry kTenFloats{10, 4};
constexpr PeerId kLeaver{7};
constexpr PeerId kKeeper{8};

std::vector<float> sum_of(float first) {
  std::vector<float> values;
  for (int i = 0; i < 10; ++i) values.push_back(first + static_cast<float>(i));
  return values;
}

wire::Entrust entrust(const std::vector<std::uint32_t>& slots) {
  wire::Entrust all{3, 0, {}, {kLeaver}};
  for (const std::uint32_t slot : slots) all.slots.push_back({slot, RangeSet(Range{slot, 1}), {}});
  return all;
}

class CustodyOfTwo : public ::testing::Test {
 protected:
  CustodyOfTwo() {
    leaver.open({3});
    keeper.open({3});
  }

  int deliver(int most = 100) {
    int sent = 0;
    while (sent < most) {
      const std::optional<wire::Message> message = leaver.next_segment(kKeeper);
      if (!message) break;
      EXPECT_TRUE(keeper.on_segment(kLeaver, std::get<wire::EntrustedSum>(*message)).ok());
      ++sent;
    }
    return sent;
  }

  std::vector<float> first = sum_of(1), second = sum_of(50);
  Custody leaver{kTenFloats}, keeper{kTenFloats};
};

TEST_F(CustodyOfTwo, brings_sums_over_unchanged) {
  leaver.give(kKeeper, {{0, {first}}, {2, {second}}});
  EXPECT_FALSE(leaver.next_segment(kLeaver)) << "they are for the keeper alone";
  EXPECT_FALSE(leaver.take_given());
  EXPECT_EQ(6, deliver());
  EXPECT_TRUE(leaver.take_given());
  EXPECT_FALSE(leaver.take_given()) << "once";
  EXPECT_FALSE(keeper.take_whole()) << "nobody said what they are";
  keeper.on_entrust(kLeaver, entrust({0, 2}));
  const std::optional<Custody::Whole> whole = keeper.take_whole();
  ASSERT_TRUE(whole);
  EXPECT_EQ(kLeaver, whole->from);
  keeper.keep(kLeaver, 0, 48);
  keeper.keep(kLeaver, 2, 49);
  EXPECT_THAT(std::vector<float>(keeper.sum(48).values.begin(), keeper.sum(48).values.end()),
              testing::ElementsAreArray(first));
  EXPECT_THAT(std::vector<float>(keeper.sum(49).values.begin(), keeper.sum(49).values.end()),
              testing::ElementsAreArray(second));
  EXPECT_FALSE(keeper.take_whole()) << "once";
}

TEST_F(CustodyOfTwo, waits_for_the_last_segment) {
  leaver.give(kKeeper, {{0, {first}}});
  deliver(2);
  keeper.on_entrust(kLeaver, entrust({0}));
  EXPECT_FALSE(keeper.take_whole());
  deliver(1);
  EXPECT_TRUE(keeper.take_whole());
}

TEST_F(CustodyOfTwo, begins_anew_on_a_new_link_and_ends_when_called_off) {
  leaver.give(kKeeper, {{0, {first}}});
  EXPECT_EQ(3, deliver());
  leaver.on_new_link(kKeeper);
  EXPECT_FALSE(leaver.take_given());
  EXPECT_EQ(3, deliver());
  leaver.give(kKeeper, {{0, {first}}});
  leaver.call_off();
  EXPECT_EQ(0, deliver());
  EXPECT_FALSE(leaver.take_given());
}

TEST_F(CustodyOfTwo, sends_all_that_it_gives_again_on_a_new_link_wherever_the_old_one_broke) {
  keeper.on_entrust(kLeaver, entrust({0, 2}));
  for (int before = 0; before <= 6; ++before) {
    leaver.give(kKeeper, {{0, {first}}, {2, {second}}});
    deliver(before);
    leaver.on_new_link(kLeaver);
    EXPECT_EQ(6 - before, deliver()) << "it is the link of another peer";
    leaver.give(kKeeper, {{0, {first}}, {2, {second}}});
    deliver(before);
    leaver.on_new_link(kKeeper);
    EXPECT_EQ(6, deliver()) << before << " segments went to the old one, and may be lost";
    EXPECT_TRUE(leaver.take_given());
    leaver.on_new_link(kKeeper);
    deliver();
    EXPECT_TRUE(leaver.take_given()) << "given to another link, it is said again";
  }
  EXPECT_TRUE(keeper.take_whole());
}

TEST_F(CustodyOfTwo, gives_the_later_gift_instead_of_the_one_under_way) {
  leaver.give(kKeeper, {{0, {first}}});
  deliver(1);
  leaver.give(kKeeper, {{2, {second}}});
  EXPECT_EQ(3, deliver());
  EXPECT_TRUE(leaver.take_given());
  keeper.on_entrust(kLeaver, entrust({2}));
  EXPECT_TRUE(keeper.take_whole());
}

TEST_F(CustodyOfTwo, goes_by_the_last_word_of_a_leaver) {
  leaver.give(kKeeper, {{0, {first}}, {2, {second}}});
  keeper.on_entrust(kLeaver, entrust({0}));
  keeper.on_entrust(kLeaver, entrust({0, 2}));
  deliver(3);
  EXPECT_FALSE(keeper.take_whole()) << "it gives a second sum";
  deliver(3);
  const std::optional<Custody::Whole> whole = keeper.take_whole();
  ASSERT_TRUE(whole);
  EXPECT_EQ(2U, whole->entrust.slots.size());
  EXPECT_FALSE(keeper.take_whole());
}

TEST_F(CustodyOfTwo, gives_nothing_at_once) {
  leaver.give(kKeeper, {});
  EXPECT_TRUE(leaver.take_given());
  keeper.on_entrust(kLeaver, entrust({}));
  EXPECT_TRUE(keeper.take_whole()) << "its vote alone";
}

TEST_F(CustodyOfTwo, drops_what_is_not_finite) {
  first[5] = std::numeric_limits<float>::quiet_NaN();
  leaver.give(kKeeper, {{0, {first}}});
  deliver();
  keeper.on_entrust(kLeaver, entrust({0}));
  EXPECT_FALSE(keeper.take_whole());
}

TEST_F(CustodyOfTwo, is_bounded_whatever_is_sent) {
  const Blob payload(std::vector<std::byte>(16));
  EXPECT_FALSE(keeper.on_segment(kLeaver, {{3}, 0, 3, payload}).ok()) << "no such segment";
  EXPECT_FALSE(keeper.on_segment(kLeaver, {{3}, 0, 2, payload}).ok()) << "too long";
  EXPECT_FALSE(keeper.on_segment(kLeaver, {{3}, wire::kMostSlots, 0, payload}).ok());
  EXPECT_TRUE(keeper.on_segment(kLeaver, {{2}, 0, 0, payload}).ok()) << "late";
  EXPECT_EQ(0U, keeper.held_bytes());
  int taken = 0;
  for (std::uint64_t peer = 10; peer < 30; ++peer) {
    for (std::uint32_t slot = 0; slot < 10; ++slot)
      taken += keeper.on_segment(PeerId{peer}, {{3}, slot, 0, payload}).ok() ? 1 : 0;
  }
  EXPECT_EQ(static_cast<int>(wire::kMostSlots - wire::kLeaseSlots), taken);
  EXPECT_EQ(16U * 40U, keeper.held_bytes());
  keeper.open({4});
  EXPECT_EQ(0U, keeper.held_bytes());
}

}  // namespace
}  // namespace tw::average
