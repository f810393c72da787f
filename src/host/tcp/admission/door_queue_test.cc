// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/admission/door_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tw::host {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using Reason = DoorQueue::Reason;
using Serial = DoorQueue::Serial;
using Dismissal = DoorQueue::Dismissal;

constexpr Instant kDoorsOpen{1h};

/// A queue at a time that the test moves on.
struct DoorStory {
  explicit DoorStory(DoorQueue::Rules rules = {}) : queue(rules) {}

  Serial arrives(const std::string& host) {
    queue.arrive(now, ++last, host);
    return last;
  }

  Serial asks(const std::string& host) {
    const Serial stranger = arrives(host);
    queue.spoke(stranger);
    return stranger;
  }

  /// Time passes, step by step as the queue wants to be woken.
  void pass(Duration duration) {
    const Instant end = now + duration;
    step();
    while (queue.next_step() <= end) {
      ASSERT_GT(queue.next_step(), now) << "it has nothing to do again and again";
      now = queue.next_step();
      step();
    }
    now = end;
  }

  void step() {
    const auto [gone, turns] = queue.step(now);
    dismissed.insert(dismissed.end(), gone.begin(), gone.end());
    served.insert(served.end(), turns.begin(), turns.end());
  }

  bool serves(Serial stranger) const { return std::ranges::find(served, stranger) != served.end(); }

  bool dismissed_one(Serial stranger) const {
    return std::ranges::any_of(dismissed, [&](const Dismissal& one) { return one.stranger == stranger; });
  }

  DoorQueue queue;
  Instant now = kDoorsOpen;
  Serial last = 0;
  std::vector<Dismissal> dismissed;
  std::vector<Serial> served;
};

std::string neighbour(int number) { return "10.0.0." + std::to_string(number); }

TEST(DoorQueue, serves_whoever_says_something_at_once) {
  DoorStory door;
  const Serial silent = door.arrives("here");
  const Serial speaks = door.asks("here");
  door.step();
  EXPECT_THAT(door.served, ElementsAre(speaks));
  door.queue.spoke(silent);
  door.step();
  EXPECT_THAT(door.served, ElementsAre(speaks, silent));
  door.queue.leave(speaks);
  door.queue.leave(silent);
  EXPECT_EQ(door.queue.next_step(), kNever);
}

TEST(DoorQueue, dismisses_a_stranger_that_says_nothing_for_a_second_and_one_that_is_not_admitted_in_ten) {
  DoorStory door;
  const Serial silent = door.arrives("a");
  const Serial slow = door.asks("b");
  door.pass(1s);
  EXPECT_THAT(door.dismissed, ElementsAre(Dismissal{silent, Reason::silent}));
  door.pass(9s - 1ms);
  EXPECT_EQ(door.dismissed.size(), 1U);
  door.pass(1ms);
  EXPECT_EQ(door.dismissed.back(), (Dismissal{slow, Reason::slow}));
  EXPECT_EQ(door.queue.next_step(), kNever);
}

TEST(DoorQueue, gives_a_shorter_patience_to_the_first_byte_too) {
  DoorStory door({.whole = 100ms});
  const Serial silent = door.arrives("a");
  door.pass(100ms);
  EXPECT_THAT(door.dismissed, ElementsAre(Dismissal{silent, Reason::silent}));
}

TEST(DoorQueue, makes_room_at_the_host_with_most_strangers_and_there_of_the_one_that_is_silent_longest) {
  DoorStory door({.most_waiting = 8});
  const Serial other = door.arrives("b");
  std::vector<Serial> many;
  for (int i = 0; i < 20; ++i) many.push_back(door.arrives("a"));
  door.step();
  ASSERT_EQ(door.dismissed.size(), 13U);
  for (std::size_t i = 0; i < 13; ++i)
    EXPECT_EQ(door.dismissed[i], (Dismissal{many[i], Reason::crowded})) << i;
  EXPECT_FALSE(door.dismissed_one(other));
}

TEST(DoorQueue, keeps_half_of_the_places_of_a_host_for_either_kind) {
  DoorStory door({.most_waiting = 8, .most_served = 0});
  for (int i = 0; i < 8; ++i) (void)door.asks("a");
  for (int i = 0; i < 100; ++i) (void)door.arrives("a");
  door.step();
  for (Serial one = 1; one <= 4; ++one) EXPECT_TRUE(door.dismissed_one(one));
  for (Serial one = 5; one <= 8; ++one)
    EXPECT_FALSE(door.dismissed_one(one)) << "silent ones push out no ready one";
}

TEST(DoorQueue, lets_a_prompt_stranger_through_any_number_of_silent_and_slow_ones_of_other_hosts) {
  DoorStory door;
  for (int i = 0; i < 500; ++i) (void)door.arrives(neighbour(i % 8));
  for (int i = 0; i < 500; ++i) (void)door.asks(neighbour(i % 8));
  door.pass(3s);
  for (int i = 0; i < 500; ++i) (void)door.asks(neighbour(i % 8));
  const Serial honest = door.arrives("honest");
  door.pass(50ms);
  EXPECT_FALSE(door.dismissed_one(honest));
  door.queue.spoke(honest);
  door.pass(20ms);
  EXPECT_TRUE(door.serves(honest));
  for (int i = 0; i < 500; ++i) {
    (void)door.asks(neighbour(i % 8));
    door.pass(2ms);
  }
  EXPECT_FALSE(door.dismissed_one(honest)) << "others make room first";
}

TEST(DoorQueue, lets_a_prompt_stranger_through_silent_and_slow_ones_of_its_own_host) {
  DoorStory door;
  for (int i = 0; i < 500; ++i) {
    (void)door.arrives("nat");
    (void)door.asks("nat");
    door.pass(2ms);
  }
  const Serial honest = door.asks("nat");
  door.pass(10ms);
  EXPECT_TRUE(door.serves(honest)) << "the newest first";
  for (int i = 0; i < 450; ++i) {
    (void)door.asks("nat");
    door.pass(2ms);
  }
  EXPECT_FALSE(door.dismissed_one(honest)) << "nobody makes room within a second of its turn";
}

TEST(DoorQueue, gives_turns_at_a_pace_to_the_host_with_the_fewest_being_served) {
  DoorStory door({.between_turns = 10ms, .burst = 4});
  for (int i = 0; i < 100; ++i) (void)door.asks("a");
  door.step();
  EXPECT_THAT(door.served, ElementsAre(100, 99, 98, 97));
  const Serial other = door.asks("b");
  door.pass(10ms);
  ASSERT_EQ(door.served.size(), 5U);
  EXPECT_EQ(door.served.back(), other);
  door.pass(500ms);
  EXPECT_EQ(door.served.size(), 55U);
}

TEST(DoorQueue, makes_room_for_a_turn_after_a_second_or_at_once_when_one_failed) {
  DoorStory door({.most_served = 4});
  for (int i = 0; i < 4; ++i) (void)door.asks("a");
  door.pass(500ms);
  const Serial fifth = door.asks("b");
  door.pass(100ms);
  EXPECT_FALSE(door.serves(fifth));
  door.queue.failed(3);
  door.pass(Duration{});
  EXPECT_TRUE(door.serves(fifth));
  EXPECT_THAT(door.dismissed, ElementsAre(Dismissal{3, Reason::crowded}));
  const Serial sixth = door.asks("b");
  door.pass(400ms);
  EXPECT_TRUE(door.serves(sixth));
  EXPECT_EQ(door.dismissed.size(), 2U);
  EXPECT_FALSE(door.dismissed_one(fifth));
}

TEST(DoorQueue, keeps_places_and_turns_for_known_hosts) {
  DoorStory door({.most_waiting = 8, .most_served = 4});
  door.queue.know("member");
  for (int i = 0; i < 100; ++i) (void)door.asks(neighbour(i));
  door.pass(100ms);
  const Serial member = door.asks("member");
  door.step();
  EXPECT_TRUE(door.serves(member));
  for (int i = 0; i < 100; ++i) (void)door.asks(neighbour(i));
  door.pass(5s);
  EXPECT_FALSE(door.dismissed_one(member));
}

TEST(DoorQueue, moves_the_strangers_of_a_host_that_becomes_known) {
  DoorStory door({.most_waiting = 4, .most_served = 1});
  (void)door.asks("other");
  door.step();
  const Serial member = door.asks("member");
  door.step();
  EXPECT_FALSE(door.serves(member));
  door.queue.know("member");
  door.step();
  EXPECT_TRUE(door.serves(member));
  door.queue.leave(member);
  for (int i = 0; i < 4; ++i) (void)door.arrives("other");
  door.step();
  EXPECT_THAT(door.dismissed, IsEmpty()) << "its places are free again";
}

TEST(DoorQueue, forgets_the_hosts_that_were_named_first) {
  DoorStory door({.most_served = 1});
  door.queue.know("first");
  for (std::size_t i = 0; i < DoorQueue::kMostKnown; ++i) door.queue.know(std::to_string(i));
  (void)door.asks("other");
  door.step();
  const Serial first = door.asks("first");
  const Serial last = door.asks("17");
  door.step();
  EXPECT_FALSE(door.serves(first));
  EXPECT_TRUE(door.serves(last));
}

TEST(DoorQueue, dismisses_strangers_when_descriptors_are_out_and_no_known_one_that_is_served) {
  DoorStory door;
  door.queue.know("member");
  const Serial member = door.asks("member");
  const Serial served = door.asks("a");
  door.step();
  const Serial waits = door.arrives("a");
  EXPECT_TRUE(door.queue.make_room());
  EXPECT_TRUE(door.queue.make_room());
  EXPECT_FALSE(door.queue.make_room());
  door.step();
  EXPECT_THAT(door.dismissed,
              ElementsAre(Dismissal{waits, Reason::crowded}, Dismissal{served, Reason::crowded}));
  EXPECT_TRUE(door.serves(member));
}

TEST(DoorQueue, takes_less_than_half_of_the_descriptors) {
  for (const std::uint64_t descriptors : {256ULL, 1024ULL, 20'000ULL, 1'000'000ULL}) {
    const auto rules = DoorQueue::Rules::within(descriptors);
    EXPECT_LE(2 * (rules.most_waiting + rules.most_served), descriptors / 2) << descriptors;
    EXPECT_GE(rules.most_waiting, 32U) << descriptors;
  }
  EXPECT_EQ(DoorQueue::Rules::within(1'000'000).most_waiting, DoorQueue::Rules{}.most_waiting);
}

}  // namespace
}  // namespace tw::host
