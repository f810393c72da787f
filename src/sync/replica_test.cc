// SPDX-License-Identifier: Apache-2.0
#include "sync/replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "sync/test_state.h"

namespace tw::sync {
namespace {

using namespace std::chrono_literals;
using ReplicaState = Replica::State;
using Behind = Replica::Behind;

constexpr Instant kStart = Instant{} + 1h;
constexpr PeerId kMember{20};
constexpr PeerId kNewcomer{21};

Replica::Options replica_options() {
  return {.fetch = {sample::kRun,
                    {sample::kStateBytes, sample::kChunkBytes},
                    {{sample::kMeanBytes, sample::kSegmentBytes}}}};
}

Replica::Others others(const std::vector<PeerId>& sources, const wire::Record& best) {
  return {sources, rank_of(best)};
}

/// A member at the head of a history, and a newcomer that is linked to it.
class Pair : public ::testing::Test {
 protected:
  Pair() {
    member.begin({});
    member.found(records[0]);
  }

  void commit_up_to(Round round) {
    while (member.tip()->record.round < round) {
      const Round next = member.tip()->record.round + 1;
      member.commit(records[next], sample::segments(1, next));
      member.applied(next, Digest{next, 0});
    }
  }

  Replica::Others all() const { return others({kMember}, member.tip()->record); }

  /// Delivers all messages and chunks until there are none, and makes the image that the member asks for.
  void talk() {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (wire::Envelope& sent : newcomer.take_messages())
        goes_on = member.on_message(now, kNewcomer, sent.message) || goes_on;
      if (const auto wanted = member.wants_image())
        member.give(std::make_shared<const StateImage>(sample::image(*wanted)));  // owners: donor
      for (wire::Envelope& sent : member.take_messages())
        goes_on = newcomer.on_message(now, kMember, sent.message) || goes_on;
      while (std::optional<wire::Message> chunk = member.next_chunk(kNewcomer, false))
        goes_on = newcomer.on_message(now, kMember, *chunk) || goes_on;
      now += 1ms;
    }
  }

  Instant now = kStart;
  std::vector<wire::Record> records = sample::history(1, 30);
  Replica member{replica_options()};
  Replica newcomer{replica_options()};
};

TEST_F(Pair, take_the_state_then_the_mean_that_was_decided_meanwhile) {
  commit_up_to(5);
  newcomer.catch_up(now, Behind::rounds, true, all());
  EXPECT_EQ(ReplicaState::fetching, newcomer.state());
  talk();
  Replica::Next next = newcomer.next(now, all());
  const auto* state = std::get_if<Replica::TakeState>(&next);
  ASSERT_NE(nullptr, state);
  EXPECT_EQ(records[5], state->image.record);
  EXPECT_EQ(ReplicaState::restoring, newcomer.state());
  commit_up_to(6);
  EXPECT_FALSE(newcomer.come_to(now, {records[5], {}}, all()));
  EXPECT_EQ(ReplicaState::fetching, newcomer.state());
  talk();
  next = newcomer.next(now, all());
  const auto* mean = std::get_if<Replica::TakeMean>(&next);
  ASSERT_NE(nullptr, mean);
  EXPECT_EQ(records[6], mean->mean.record);
  EXPECT_EQ(ReplicaState::replaying, newcomer.state());
  EXPECT_TRUE(newcomer.come_to(now, {records[6], {}}, all()));
  EXPECT_EQ(ReplicaState::current, newcomer.state());
  EXPECT_LT(0U, member.held_bytes());
  newcomer.joined();
  talk();
  EXPECT_EQ(0U, member.held_bytes()) << "it was told that nothing more is needed";
}

// Rounds of 0.1 s go on without a peer whose link to the leader is broken for a while.
TEST_F(Pair, is_too_slow_once_it_has_lost_ground_a_hundred_times_and_for_ten_minutes) {
  commit_up_to(5);
  for (std::uint32_t i = 0; i <= Replica::kLostForGood; ++i) {
    newcomer.catch_up(now, Behind::rounds, true, all());
    ASSERT_TRUE(newcomer.come_to(now, {records[5], {}}, all()));
    now += 100ms;
  }
  EXPECT_EQ(Replica::kLostForGood, newcomer.progress_of_catching_up().lost_ground);
  EXPECT_FALSE(newcomer.is_too_slow(now, false));
  now += Replica::kStrugglesAtMost;
  EXPECT_TRUE(newcomer.is_too_slow(now, false));
  EXPECT_FALSE(newcomer.is_too_slow(now, true)) << "the cause is the link";
  EXPECT_FALSE(newcomer.is_too_slow(now + Replica::kStrugglesAtMost - 1ms, false));
  EXPECT_TRUE(newcomer.is_too_slow(now + Replica::kStrugglesAtMost, false));
}

TEST_F(Pair, take_the_state_again_when_it_cannot_be_used) {
  commit_up_to(2);
  newcomer.catch_up(now, Behind::rounds, true, all());
  talk();
  ASSERT_TRUE(std::holds_alternative<Replica::TakeState>(newcomer.next(now, all())));
  newcomer.take_again(now, all());
  EXPECT_EQ(ReplicaState::fetching, newcomer.state());
  talk();
  EXPECT_TRUE(std::holds_alternative<Replica::TakeState>(newcomer.next(now, all())));
}

TEST_F(Pair, ask_for_a_missed_mean_first_and_for_the_state_where_nobody_kept_it) {
  newcomer.begin({});
  newcomer.found(records[0]);
  commit_up_to(3);
  newcomer.catch_up(now, Behind::rounds, true, all());
  talk();
  EXPECT_TRUE(std::holds_alternative<std::monostate>(newcomer.next(now, all())))
      << "it was not followed when that round was decided: the mean is gone, and the state is asked for";
  talk();
  EXPECT_TRUE(std::holds_alternative<Replica::TakeState>(newcomer.next(now, all())));
}

TEST_F(Pair, take_the_state_and_no_mean_where_their_parameters_differ) {
  for (const Behind behind : {Behind::rounds, Behind::differs}) {
    commit_up_to(member.tip()->record.round + 1);
    newcomer.catch_up(now, Behind::rounds, true, all());
    talk();
    Replica::Next next = newcomer.next(now, all());
    const bool came =
        std::holds_alternative<Replica::TakeState>(next) || std::holds_alternative<Replica::TakeMean>(next);
    ASSERT_TRUE(came);
    ASSERT_TRUE(newcomer.come_to(now, {member.tip()->record, {}}, all()));
    commit_up_to(member.tip()->record.round + 1);  // the member keeps its mean: no peer has thanked yet
    newcomer.catch_up(now, behind, true, all());
    talk();
    next = newcomer.next(now, all());
    EXPECT_EQ(behind == Behind::rounds, std::holds_alternative<Replica::TakeMean>(next));
    EXPECT_EQ(behind == Behind::differs, std::holds_alternative<Replica::TakeState>(next));
    ASSERT_TRUE(newcomer.come_to(now, {member.tip()->record, {}}, all()));
  }
}

TEST_F(Pair, say_when_their_parameters_differ_too_often) {
  EXPECT_EQ(std::nullopt, newcomer.differed(4));
  EXPECT_EQ(std::nullopt, newcomer.differed(8));
  EXPECT_EQ(std::nullopt, newcomer.differed(14)) << "round 4 was ten rounds ago";
  EXPECT_EQ((std::vector<Round>{8, 14, 17}), newcomer.differed(17));
}

TEST_F(Pair, wait_for_own_updates_before_they_ask) {
  newcomer.begin({});
  newcomer.found(records[0]);
  newcomer.commit(records[1], sample::segments(1, 1));
  commit_up_to(3);
  newcomer.catch_up(now, Behind::rounds, false, all());
  EXPECT_EQ(ReplicaState::settling, newcomer.state());
  EXPECT_TRUE(newcomer.is_catching_up());
  EXPECT_TRUE(newcomer.take_messages().empty());
  newcomer.applied(1, Digest{1, 1});
  newcomer.settled(now, all());
  EXPECT_EQ(ReplicaState::fetching, newcomer.state());
  EXPECT_FALSE(newcomer.take_messages().empty());
}

TEST_F(Pair, give_chunks_when_the_lines_are_free) {
  commit_up_to(1);
  newcomer.catch_up(now, Behind::rounds, true, all());
  for (wire::Envelope& sent : newcomer.take_messages()) member.on_message(now, kNewcomer, sent.message);
  EXPECT_FALSE(member.holds_chunks());
  EXPECT_FALSE(member.next_chunk(kNewcomer, true));
  EXPECT_TRUE(member.holds_chunks());
  member.let_chunks_go();
  EXPECT_FALSE(member.holds_chunks());
}

TEST_F(Pair, copy_one_image_at_a_time_and_none_while_they_catch_up) {
  newcomer.catch_up(now, Behind::rounds, true, all());
  for (wire::Envelope& sent : newcomer.take_messages()) member.on_message(now, kNewcomer, sent.message);
  EXPECT_EQ(records[0], member.wants_image());
  EXPECT_EQ(std::nullopt, member.wants_image());
  member.catch_up(now, Behind::rounds, true, others({}, records[5]));
  member.give(std::make_shared<const StateImage>(sample::image(records[0])));  // owners: nobody
  EXPECT_EQ(0U, member.held_bytes() - Donor::kFollowerBytes) << "it is not what others need now";
  EXPECT_EQ(std::nullopt, member.wants_image());
}

TEST(Replica, goes_on_alone_from_a_checkpoint_unless_others_were_found) {
  const std::vector<wire::Record> records = sample::history(1, 5);
  Replica alone(replica_options());
  alone.load();
  EXPECT_FALSE(alone.is_catching_up());
  alone.loaded_nothing();
  EXPECT_EQ(ReplicaState::empty, alone.state());
  alone.resume(kStart);
  EXPECT_TRUE(alone.is_catching_up());
  EXPECT_TRUE(alone.come_to(kStart, {records[3], {}}, {}));
  EXPECT_EQ(ReplicaState::current, alone.state());

  Replica found(replica_options());
  found.load();
  found.catch_up(kStart, Behind::rounds, true, others({kMember}, records[5]));
  found.loaded_nothing();
  EXPECT_EQ(ReplicaState::fetching, found.state());
}

TEST_F(Pair, know_the_parameters_after_their_tip_and_not_those_after_another_round) {
  commit_up_to(1);
  member.commit(records[2], sample::segments(1, 2));
  member.applied(1, Digest{1, 1});
  EXPECT_EQ(Digest{}, member.tip()->parameters) << "that update was the one before the tip's";
  member.applied(3, Digest{3, 3});
  EXPECT_EQ(Digest{}, member.tip()->parameters);
  member.applied(2, Digest{2, 2});
  EXPECT_EQ((Digest{2, 2}), member.tip()->parameters);
  member.applied(1, Digest{1, 1});
  EXPECT_EQ((Digest{2, 2}), member.tip()->parameters);
}

TEST(Replica, has_no_history_before_the_first_record) {
  Replica replica(replica_options());
  replica.begin(Digest{1, 2});
  EXPECT_FALSE(replica.has_history());
  EXPECT_TRUE(replica.found(sample::history(1, 0).front()));
  EXPECT_TRUE(replica.has_history());
  EXPECT_EQ((Digest{1, 2}), replica.tip()->parameters);
  EXPECT_FALSE(replica.found(sample::history(1, 0).front()));
}

TEST(ReplicaDeathTest, decides_nothing_while_it_is_behind) {
  const std::vector<wire::Record> records = sample::history(1, 5);
  Replica replica(replica_options());
  EXPECT_DEATH(replica.commit(records[1], {}), "current");
  EXPECT_DEATH(replica.next(kStart, {}), "is_catching_up");
  EXPECT_DEATH(replica.settled(kStart, {}), "settling");
  EXPECT_DEATH(replica.give(nullptr), "is_copied");
  replica.begin({});
  EXPECT_DEATH(replica.load(), "may_follow");
  replica.catch_up(kStart, Behind::rounds, false, {});
  EXPECT_DEATH(replica.commit(records[1], {}), "current");
  EXPECT_DEATH(replica.resume(kStart), "may_follow");
}

}  // namespace
}  // namespace tw::sync
