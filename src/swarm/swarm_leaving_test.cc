// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "swarm/test_swarm.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;
using world::Phase;

/// Rounds of a minute and more: 2,000 microbatches of 150 ms among 3 peers.
Pool::Setup long_rounds() {
  Pool::Setup setup;
  setup.lease = {8000, 4};
  return setup;
}

/// Samples of each committed round of a peer.
std::vector<std::uint64_t> samples(Pool& pool, std::uint64_t id) {
  std::vector<std::uint64_t> all;
  for (const wire::Record& record : pool.peer(id).applied) {
    if (record.round > 0) all.push_back(record.samples);
  }
  return all;
}

void leave_within(Pool& pool, std::uint64_t id, Duration time) {
  pool.at(id).leave(pool.now(), pool.now() + time);
}

bool has_left(Pool& pool, std::uint64_t id) { return !pool.peer(id).ends.empty(); }

std::int64_t events(Pool& pool, std::uint64_t id, Phase phase) {
  return std::ranges::count(pool.peer(id).events, phase, &world::Event::phase);
}

/// Number of contributions of at least 100 samples that their sender did not compute itself.
std::int64_t kept_sums(const wire::Record& record) {
  return std::ranges::count_if(record.contributors, [](const wire::Contribution& c) {
    return c.slot >= wire::kLeaseSlots && c.samples > 100;
  });
}

TEST(SwarmLeaving, hands_over_what_it_did_where_the_round_takes_longer_than_its_notice) {
  Pool pool(long_rounds());
  pool.start_all(3);
  pool.run_for(20s);
  leave_within(pool, 3, 10s);
  ASSERT_TRUE(pool.comes([&] { return has_left(pool, 3); }, 3s));
  EXPECT_THAT(pool.peer(3).ends.front(), testing::HasSubstr("has what this one did"));
  pool.kill(3);
  ASSERT_TRUE(pool.comes([&] { return pool.round_of(1) == 1; }, 200s));
  EXPECT_THAT(samples(pool, 1), testing::ElementsAre(8000));
  EXPECT_EQ(0, events(pool, 1, Phase::reissue)) << "nothing is computed twice";
  EXPECT_FALSE(pool.peer(1).applied.back().minority);
  EXPECT_EQ(1, kept_sums(pool.peer(1).applied.back())) << "a peer contributes in its place";
}

TEST(SwarmLeaving, waits_for_a_round_that_is_nearly_over) {
  Pool pool;
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(1, 3));
  leave_within(pool, 3, 10s);
  ASSERT_TRUE(pool.comes([&] { return has_left(pool, 3); }, 3s));
  EXPECT_THAT(pool.peer(3).ends.front(), testing::HasSubstr("left after round"));
}

// Its round trip is longer than a round: its report comes after the call, and the next round forgets it.
TEST(SwarmLeaving, lets_a_peer_go_whose_reports_come_too_late_in_each_round) {
  Pool pool;
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(1, 2));
  pool.drop = [](std::uint64_t from, std::uint64_t, const wire::Message& message) {
    return from == 3 && std::holds_alternative<wire::Progress>(message);
  };
  ASSERT_TRUE(pool.reaches(1, 4));
  pool.at(3).leave(pool.now());
  const Round asked = pool.round_of(1);
  ASSERT_TRUE(pool.comes([&] { return has_left(pool, 3); }));
  EXPECT_LE(pool.round_of(1), asked + 2);
}

// If its vote were lost, the other one would wait until its patience ends, and go on without a majority.
TEST(SwarmLeaving, leaves_its_vote_with_the_other_one_of_two) {
  for (const std::uint64_t leaver : {1, 2}) {
    Pool pool(long_rounds());
    pool.start_all(2);
    pool.run_for(10s);
    leave_within(pool, leaver, 10s);
    EXPECT_TRUE(pool.comes([&] { return has_left(pool, leaver); }, 3s)) << leaver;
    pool.kill(leaver);
    const std::uint64_t other = 3 - leaver;
    ASSERT_TRUE(pool.comes([&] { return pool.round_of(other) == 2; }, 700s)) << leaver;
    EXPECT_THAT(samples(pool, other), testing::ElementsAre(8000, 8000));
    EXPECT_FALSE(pool.peer(other).applied[1].minority);
    EXPECT_EQ(0, events(pool, other, Phase::reissue));
  }
}

// The same for one that ends at once, as at an exception of its program: its sums are lost, its vote is not.
TEST(SwarmLeaving, leaves_its_vote_where_it_ends_at_once) {
  for (const std::uint64_t leaver : {1, 2}) {
    Pool pool;
    pool.start_all(2);
    ASSERT_TRUE(pool.reaches(1, 2));
    pool.run_for(100ms);
    pool.at(leaver).leave(pool.now());
    pool.at(leaver).leaving().leave_seat();
    pool.run_for(20ms);  // its last messages arrive
    pool.kill(leaver);
    const std::uint64_t other = 3 - leaver;
    const Round then = pool.round_of(other);
    ASSERT_TRUE(pool.comes([&] { return pool.round_of(other) >= then + 1; }, 4s)) << leaver;
    for (const wire::Record& record : pool.peer(other).applied) EXPECT_FALSE(record.minority) << leaver;
  }
}

TEST(SwarmLeaving, hands_on_what_it_keeps_for_others) {
  Pool pool(long_rounds());
  pool.start_all(3);
  pool.run_for(10s);
  for (const std::uint64_t leaver : {1, 2}) {
    leave_within(pool, leaver, 10s);
    ASSERT_TRUE(pool.comes([&] { return has_left(pool, leaver); }, 4s)) << leaver;
    pool.kill(leaver);
  }
  ASSERT_TRUE(pool.comes([&] { return pool.round_of(3) == 1; }, 400s));
  EXPECT_THAT(samples(pool, 3), testing::ElementsAre(8000));
  EXPECT_FALSE(pool.peer(3).applied.back().minority) << "it has three votes of three";
  EXPECT_EQ(0, events(pool, 3, Phase::reissue));
}

TEST(SwarmLeaving, chooses_another_custodian_when_the_first_dies) {
  Pool pool(long_rounds());
  pool.start_all(5);
  pool.run_for(10s);
  std::optional<std::uint64_t> first;
  pool.drop = [&](std::uint64_t from, std::uint64_t to, const wire::Message& message) {
    if (from == 5 && std::holds_alternative<wire::Entrust>(message) && !first) first = to;
    return first == to && std::holds_alternative<wire::Entrust>(message);
  };
  leave_within(pool, 5, 60s);
  ASSERT_TRUE(pool.comes([&] { return first.has_value(); }, 3s));
  pool.kill(*first);
  pool.run_for(5s);
  const std::uint64_t live = *first == 1 ? 2 : 1;
  EXPECT_FALSE(has_left(pool, 5)) << "its vote is with the one that died: it stays as long as it can";
  pool.kill(5);
  ASSERT_TRUE(pool.comes([&] { return pool.round_of(live) == 1; }, 400s));
  EXPECT_THAT(samples(pool, live), testing::ElementsAre(8000));
  EXPECT_EQ(1, kept_sums(pool.peer(live).applied.back()));
}

TEST(SwarmLeaving, yields_the_lead_at_once) {
  Pool pool(long_rounds());
  pool.start_all(3);
  pool.run_for(5s);
  ASSERT_EQ(PeerId{1}, pool.at(2).view().leader());
  pool.at(1).set_at_risk(pool.now(), true);
  EXPECT_FALSE(pool.at(1).leading().leads()) << "before anybody outbids it";
  EXPECT_TRUE(pool.comes([&] { return pool.at(2).leading().leads() && !pool.at(1).leading().leads(); }, 1s));
  EXPECT_TRUE(pool.comes([&] { return pool.at(3).view().leader() == PeerId{2}; }, 1s));
  ASSERT_TRUE(pool.comes([&] { return pool.round_of(1) == 1; }, 200s));
  EXPECT_EQ(PeerId{1}, pool.peer(2).applied.back().members.back().peer) << "it is the last to lead";
  EXPECT_EQ(0, events(pool, 2, Phase::reissue));
}

TEST(SwarmLeaving, keeps_the_lead_where_nobody_expects_to_stay) {
  Pool pool;
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(1, 1));
  for (const std::uint64_t id : {1, 2, 3}) pool.at(id).set_at_risk(pool.now(), true);
  EXPECT_TRUE(pool.reaches(1, 5));
  EXPECT_EQ(PeerId{1}, pool.at(2).view().leader());
}

TEST(SwarmLeaving, does_not_entrust_a_peer_at_risk) {
  Pool pool(long_rounds());
  pool.start_all(3);
  pool.run_for(10s);
  pool.at(2).set_at_risk(pool.now(), true);
  pool.run_for(1s);
  std::set<std::uint64_t> custodians;
  pool.drop = [&](std::uint64_t, std::uint64_t to, const wire::Message& message) {
    if (std::holds_alternative<wire::Entrust>(message)) custodians.insert(to);
    return false;
  };
  leave_within(pool, 3, 10s);
  EXPECT_TRUE(pool.comes([&] { return has_left(pool, 3); }, 3s));
  EXPECT_THAT(custodians, testing::ElementsAre(1));
}

TEST(SwarmLeaving, takes_nothing_that_no_leaver_could_have) {
  Pool pool(long_rounds());
  pool.start_all(3);
  pool.run_for(5s);
  const RangeSet done(Range{1990, 5});
  const auto keeps = [&](const wire::Entrust& entrust) {
    return pool.at(1).keep(pool.now(), PeerId{3}, entrust).size();
  };
  EXPECT_EQ(0U, keeps({1, 0, {{5, done, {}}, {5, done, {}}}, {}})) << "one sum twice";
  EXPECT_EQ(0U, keeps({1, 0, {{5, RangeSet(Range{1999, 5}), {}}}, {}})) << "beyond the batch";
  EXPECT_EQ(0U, keeps({1, 0, {{5, {}, {}}}, {}})) << "of nothing";
  EXPECT_EQ(0U, keeps({1, kHighestBallot + 1, {{5, done, {}}}, {}}));
  EXPECT_EQ(0U, keeps({2, 0, {{5, done, {}}}, {}})) << "another round";
  EXPECT_EQ(1U, keeps({1, 0, {{5, done, {}}}, {}}));
}

TEST(SwarmLeaving, is_no_loss_to_others_while_its_machine_stands_still) {
  for (const bool told : {true, false}) {
    Pool pool(long_rounds());
    pool.start_all(3);
    pool.run_for(5s);
    if (told) pool.at(3).leaving().freeze(pool.now(), pool.now() + 1s, 8s);
    pool.run_for(1s);
    pool.peer(3).stopped = true;
    pool.run_for(8s);
    EXPECT_EQ(told ? 0 : 1, events(pool, 1, Phase::lost));
  }
}

}  // namespace
}  // namespace tw::swarm
