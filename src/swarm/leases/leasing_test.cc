// SPDX-License-Identifier: Apache-2.0
#include "swarm/leases/leasing.h"

#include <gmock/gmock.h>

#include "swarm/ballots/test_records.h"
#include "swarm/leases/work.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// 1 leads round 7 of 16 microbatches; its messages reach 1, 2 and 3 at once.
struct Office {
  explicit Office(LeaseRules rules = rules_of({64, 4}), std::uint32_t wait_for = 0)
      : peers(member(1), members({1, 2, 3}), false), leasing(std::move(rules), {7, 0, wait_for, {}}) {
    here({1, 2, 3});
  }

  void here(const std::vector<std::uint64_t>& ids) {
    PeerStatus::Live live;
    for (const std::uint64_t id : ids) {
      live.emplace(PeerId{id}, 0);
      works.try_emplace(PeerId{id}, Work(7));
    }
    peers.set_live(live, [](PeerId) { return false; });
  }

  void tells(std::uint64_t id, bool gave_back = false) {
    const Work& work = works.at(PeerId{id});
    wire::Progress progress{.round = 7, .parameters = kParameters, .samples_per_s = 4};
    progress.slots = work.progress();
    progress.wants_more = work.wants_more();
    progress.gave_back = gave_back;
    peers.told(member(id), {kParameters});
    leasing.on_progress(now, peers, PeerId{id}, progress, called);
    advance();
  }

  void advance() {
    if (!called) ran_out = leasing.advance(now, peers) || ran_out;
    for (const wire::Envelope& envelope : leasing.take_messages()) {
      const auto* lease = std::get_if<wire::Lease>(&envelope.message);
      sent.push_back(envelope.to);
      if (lease != nullptr && !deaf) works.at(envelope.to).lease(lease->slot, lease->microbatches);
      if (std::holds_alternative<wire::Recall>(envelope.message)) recalled.push_back(envelope.to);
    }
    if (keeps_all || recalled.empty()) return;
    for (const PeerId peer : std::exchange(recalled, {})) {
      works.at(peer).drop_queued();
      tells(peer.value, true);
    }
  }

  bool works_once(std::uint64_t id) {
    Work& work = works.at(PeerId{id});
    if (!work.begin()) return false;
    work.finish(1);
    tells(id);
    return true;
  }

  void all_work() {
    for (const std::uint64_t id : {1, 2, 3}) tells(id);
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (const std::uint64_t id : {1, 2, 3}) goes_on = works_once(id) || goes_on;
    }
  }

  std::uint64_t samples() const {
    std::uint64_t all = 0;
    for (const wire::Contribution& c : leasing.contributions(peers)) all += c.samples;
    return all;
  }

  PeerStatus peers;
  Leasing leasing;
  Instant now = kStart;
  bool called = false;
  bool deaf = false;       ///< leases get lost
  bool keeps_all = false;  ///< no peer answers a Recall
  bool ran_out = false;
  std::map<PeerId, Work> works{};
  std::vector<PeerId> sent{};
  std::vector<PeerId> recalled{};
};

TEST(Leasing, closes_the_set_of_contributions_when_all_is_done_or_about_to_be) {
  Office office;
  EXPECT_FALSE(office.leasing.is_complete());
  office.all_work();
  EXPECT_TRUE(office.leasing.is_complete());
  EXPECT_EQ(64U, office.samples());
  EXPECT_THAT(office.leasing.holders(), IsEmpty());
}

TEST(Leasing, gives_nothing_before_its_company_is_here_or_while_joiners_are_waited_for) {
  Office office(rules_of({64, 4}), 4);
  office.tells(2);
  EXPECT_THAT(office.sent, IsEmpty());
  office.leasing.hold_back_for({PeerId{9}});
  office.here({1, 2, 3, 4});
  office.tells(4);
  EXPECT_THAT(office.sent, IsEmpty());
  office.leasing.hold_back_for({});
  office.tells(1);
  EXPECT_FALSE(office.sent.empty());
}

TEST(Leasing, sends_a_lease_again_to_one_that_stands_idle) {
  Office office;
  office.deaf = true;
  office.tells(1);
  while (office.leasing.has_free()) office.tells(2);
  const std::size_t before = office.sent.size();
  office.deaf = false;
  office.now += 900ms;
  office.tells(2);
  EXPECT_EQ(before, office.sent.size()) << "the lease may be on its way";
  office.now += 100ms;
  office.tells(2);
  EXPECT_EQ(before + 1, office.sent.size());
  EXPECT_GT(office.works.at(PeerId{2}).queued(), 0U);
}

TEST(Leasing, asks_again_what_a_peer_was_asked_to_give_back) {
  Office office;
  office.keeps_all = true;
  for (const std::uint64_t id : {1, 2}) office.tells(id);
  while (office.leasing.has_free()) office.works_once(1) || (office.tells(1), true);
  while (office.works_once(1)) {
  }
  ASSERT_THAT(office.recalled, ElementsAre(PeerId{2})) << "1 stands idle";
  office.now += 1s;
  office.tells(2);
  EXPECT_THAT(office.recalled, ElementsAre(PeerId{2}, PeerId{2}));
  office.keeps_all = false;
  office.now += 1s;
  office.tells(2);
  office.all_work();
  EXPECT_TRUE(office.leasing.is_complete());
}

TEST(Leasing, gives_what_a_lost_peer_had_to_others_into_their_next_slots) {
  Office office;
  office.all_work();
  office.called = true;
  office.peers.exclude(PeerId{2});
  const RangeSet again = office.leasing.forget(office.peers, PeerId{2});
  EXPECT_FALSE(again.empty());
  EXPECT_EQ(again, office.leasing.free());
  office.leasing.reopen(office.peers);
  EXPECT_TRUE(office.leasing.leaves_rest()) << "less than half is missing: it is left to the next round";
  EXPECT_TRUE(office.leasing.is_complete());
}

TEST(Leasing, leaves_nothing_over_in_the_last_round_and_where_work_was_refused) {
  for (const bool last : {false, true}) {
    Office office;
    if (last) office.leasing.end_run();
    office.all_work();
    if (last) {
      office.peers.exclude(PeerId{2});
    } else {
      office.peers.refuse(PeerId{2});
    }
    office.leasing.forget(office.peers, PeerId{2});
    office.leasing.reopen(office.peers);
    EXPECT_FALSE(office.leasing.leaves_rest());
    office.works.at(PeerId{1}).close(0);
    office.works.at(PeerId{3}).close(0);
    for (const std::uint64_t id : {1, 3}) office.tells(id);
    while (office.works_once(1) || office.works_once(3)) {
    }
    EXPECT_EQ(64U, office.samples());
    EXPECT_TRUE(office.leasing.is_complete());
  }
}

TEST(Leasing, waits_for_those_that_hold_what_nobody_else_can_have) {
  Office office;
  office.keeps_all = true;
  for (const std::uint64_t id : {1, 2}) office.tells(id);
  EXPECT_THAT(office.leasing.awaited(office.now), IsEmpty()) << "there is more to do";
  while (office.leasing.has_free()) office.works_once(1) || (office.tells(1), true);
  while (office.works_once(1)) {
  }
  office.now += 5s;
  const std::vector<Awaited> awaited = office.leasing.awaited(office.now);
  ASSERT_EQ(1U, awaited.size());
  EXPECT_EQ(PeerId{2}, awaited.front().peer);
  EXPECT_EQ(5s, awaited.front().waited);
  EXPECT_EQ(1s, awaited.front().usual) << "4 samples at 4 samples/s";
}

TEST(Leasing, waits_for_a_peer_from_when_it_gets_something_after_it_had_nothing) {
  Office office(rules_of({12, 4}));
  for (const std::uint64_t id : {1, 2}) office.tells(id);
  office.leasing.hold_back_for({PeerId{9}});
  ASSERT_TRUE(office.works_once(2));
  office.now += 100s;
  office.tells(2);
  office.leasing.hold_back_for({});
  office.tells(2);
  office.now += 5s;
  const std::vector<Awaited> awaited = office.leasing.awaited(office.now);
  ASSERT_EQ(2U, awaited.size());
  EXPECT_EQ(105s, awaited.front().waited) << "1 holds what it got at first";
  EXPECT_EQ(5s, awaited.back().waited);
}

TEST(Leasing, takes_over_what_members_say_they_have_done) {
  Office office;
  std::map<PeerId, wire::Promise> promises;
  for (const std::uint64_t id : {1, 2, 3}) promises[PeerId{id}].progress.parameters = kParameters;
  promises[PeerId{3}].progress.slots = {{0, RangeSet(Range{0, 8}), {}}};
  EXPECT_TRUE(office.leasing.take_over(office.peers, promises, true)) << "half may be left over";
  EXPECT_EQ(32U, office.samples());
  Office other;
  EXPECT_FALSE(other.leasing.take_over(other.peers, promises, false));
  EXPECT_EQ(RangeSet(Range{8, 8}), other.leasing.free());
}

// gone 945: a new leader took its whole uptime for the time that a peer had held what the former leader had
// given it.
TEST(Leasing, waits_for_what_a_former_leader_gave_from_when_it_first_hears_of_it) {
  Office office;
  std::map<PeerId, wire::Promise> promises;
  for (const std::uint64_t id : {1, 2, 3}) promises[PeerId{id}].progress.parameters = kParameters;
  wire::Progress& held = promises[PeerId{3}].progress;
  held.slots = {{0, {}, RangeSet(Range{0, 16})}};
  office.leasing.take_over(office.peers, promises, false);
  office.now += 3s;
  for (const Duration waited : {0s, 2s}) {
    office.now += waited;
    office.leasing.on_progress(office.now, office.peers, PeerId{3}, held, false);
    const std::vector<Awaited> awaited = office.leasing.awaited(office.now);
    ASSERT_EQ(1U, awaited.size());
    EXPECT_EQ(waited, awaited.front().waited);
  }
}

TEST(Leasing, has_another_policy_say_what_a_round_is) {
  LeaseRules two_for_each{.microbatches = 6, .microbatch = 4};
  two_for_each.samples = [](const RangeSet& microbatches) { return 4 * microbatches.count(); };
  two_for_each.grant = [](double, std::uint64_t) { return 2; };
  two_for_each.may_leave_over = [](const wire::Record&) { return true; };
  Office office(two_for_each);
  office.all_work();
  EXPECT_EQ(24U, office.samples());
  for (const wire::Contribution& c : office.leasing.contributions(office.peers)) EXPECT_EQ(8U, c.samples);
}

TEST(Leasing, counts_sums_of_before_the_call_or_those_of_after_it) {
  TargetBatch batch{64, 4};
  batch.overlap = true;
  const auto has = [](std::uint32_t slot, std::uint64_t first) {
    wire::Promise promise;
    promise.progress.round = 7;
    promise.progress.slots = {{slot, RangeSet(Range{first, 2}), {}}};
    return promise;
  };
  Office late(rules_of(batch)), both(rules_of(batch));
  late.leasing.take_over(late.peers, {{PeerId{1}, has(wire::kLateSlot, 0)}}, false);
  EXPECT_EQ(late.samples(), 8U);
  EXPECT_TRUE(late.leasing.has_moved_on()) << "a former leader had called";
  EXPECT_TRUE(late.leasing.has_late(PeerId{1}));
  both.leasing.take_over(both.peers, {{PeerId{1}, has(wire::kLateSlot, 0)}, {PeerId{2}, has(0, 2)}}, false);
  ASSERT_EQ(both.leasing.contributions(both.peers).size(), 1U);
  EXPECT_EQ(both.leasing.contributions(both.peers).front().peer, PeerId{2});
}

}  // namespace
}  // namespace tw::swarm
