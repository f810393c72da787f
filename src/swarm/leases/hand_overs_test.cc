// SPDX-License-Identifier: Apache-2.0
#include "swarm/leases/hand_overs.h"

#include <gmock/gmock.h>

#include "swarm/ballots/test_records.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kSumBytes = 100'000'000;
constexpr Instant kStart = Instant{} + 1h;

TEST(HandOvers, take_whichever_is_sooner_of_what_ends_within_the_notice) {
  const auto hands_over = [](std::optional<double> round_s, double transfer_s, double notice_s) {
    return HandOvers::hands_over({round_s, transfer_s, notice_s});
  };
  EXPECT_FALSE(hands_over(10, 20, 30)) << "the round is over first";
  EXPECT_TRUE(hands_over(20, 10, 30));
  EXPECT_FALSE(hands_over(1.5, 0.1, 30)) << "so short a wait is no trouble";
  EXPECT_TRUE(hands_over(40, 20, 30)) << "the round would be too late";
  EXPECT_FALSE(hands_over(20, 40, 30)) << "the transfer would be";
  EXPECT_TRUE(hands_over(60, 40, 30)) << "both are: lines may carry more than is known";
  EXPECT_TRUE(hands_over(std::nullopt, 1, 30)) << "nobody's speed is known";
}

/// Peer 1 leads the round of 1 to 4. All microbatches are leased to 4, which leaves; 2 is at its site.
class HandOversOfOne : public ::testing::Test {
 protected:
  HandOversOfOne() {
    std::vector<wire::Member> four = members({1, 2, 3, 4});
    four[1].site = four[3].site = "aws:us-east-1:a";
    status.emplace(four[0], four, false);
    PeerStatus::Live live;
    for (const std::uint64_t id : {1, 2, 3, 4}) live.emplace(PeerId{id}, 0);
    status->set_live(live, [](PeerId) { return false; });
    for (const wire::Member& m : four) say(m.peer.value, wire::Outlook::steady);
    wire::Progress hungry = progress(4, wire::Outlook::steady);
    hungry.wants_more = true;
    leasing.on_progress(now, *status, PeerId{4}, hungry, false);
    leasing.advance(now, *status);
    leasing.take_messages();
  }

  static wire::Progress progress(std::uint64_t, wire::Outlook outlook) {
    wire::Progress said;
    said.round = 7;
    said.parameters = kParameters;
    said.samples_per_s = 4;
    said.outlook = outlook;
    said.leaving = outlook == wire::Outlook::leaves;
    said.leaves_in_s = said.leaving ? 60 : 0;
    return said;
  }

  void say(std::uint64_t id, wire::Outlook outlook, double down = 0, std::vector<PeerId> seats = {}) {
    wire::Progress said = progress(id, outlook);
    said.bandwidth = {1e8, down, {}};
    const wire::Member who = *status->process(PeerId{id});
    status->hear(PeerId{id}, said);
    status->told(who, {said.parameters, std::move(seats)});
    hand_overs.on_progress(now, PeerId{id}, said);
  }

  /// The peer has done its first three microbatches.
  void does_some(std::uint64_t id) {
    wire::Progress done = progress(id, wire::Outlook::leaves);
    done.slots = {{0, RangeSet(Range{0, 3}), {}}};
    done.gave_back = true;
    leasing.on_progress(now, *status, PeerId{id}, done, false);
  }

  std::vector<wire::HandOver> orders() {
    std::vector<wire::HandOver> all;
    for (const wire::Envelope& envelope : hand_overs.step(now, *status, leasing, 1s)) {
      EXPECT_EQ(PeerId{4}, envelope.to);
      all.push_back(std::get<wire::HandOver>(envelope.message));
    }
    return all;
  }

  Instant now = kStart;
  std::optional<PeerStatus> status;
  Leasing leasing{rules_of(TargetBatch{4000, 4}), {7, 0, 0, {}}};
  HandOvers hand_overs{7, 0, kSumBytes};
};

TEST_F(HandOversOfOne, concern_nobody_who_stays) {
  EXPECT_THAT(orders(), IsEmpty());
  say(4, wire::Outlook::at_risk);
  EXPECT_THAT(orders(), IsEmpty());
}

TEST_F(HandOversOfOne, go_to_a_peer_of_the_same_site) {
  does_some(4);
  say(3, wire::Outlook::steady, 1e9);
  say(4, wire::Outlook::leaves);
  const std::vector<wire::HandOver> due = orders();
  ASSERT_THAT(due, SizeIs(1));
  EXPECT_EQ(PeerId{2}, due.front().to) << "3 has the faster line, but is elsewhere";
  EXPECT_FALSE(due.front().released);
  EXPECT_NEAR(1, due.front().transfer_s, 0.3);
  EXPECT_THAT(orders(), IsEmpty()) << "it was told just now";
  now += 1s;
  EXPECT_THAT(orders(), SizeIs(1)) << "once more, should it be lost";
}

TEST_F(HandOversOfOne, go_to_the_fastest_line_elsewhere) {
  does_some(4);
  say(1, wire::Outlook::steady, 1e7);
  say(2, wire::Outlook::at_risk);
  say(3, wire::Outlook::steady, 5e7);
  say(4, wire::Outlook::leaves);
  ASSERT_THAT(orders(), testing::ElementsAre(testing::Field(&wire::HandOver::to, PeerId{3})));
}

TEST_F(HandOversOfOne, go_elsewhere_where_a_peer_has_no_room) {
  does_some(4);
  wire::Progress full = progress(2, wire::Outlook::steady);
  for (std::uint32_t i = 0; i < wire::kMostSlots - wire::kLeaseSlots; ++i)
    full.slots.push_back({wire::kLeaseSlots + i, RangeSet(Range{500 + i, 1}), {}});
  leasing.on_progress(now, *status, PeerId{2}, full, false);
  ASSERT_EQ(std::size_t{wire::kMostSlots - wire::kLeaseSlots}, leasing.kept_by(PeerId{2}));
  say(4, wire::Outlook::leaves);
  const std::vector<wire::HandOver> due = orders();
  ASSERT_THAT(due, SizeIs(1));
  EXPECT_NE(PeerId{2}, due.front().to) << "2 is at its site, but keeps all that it can";
}

TEST_F(HandOversOfOne, end_when_work_and_vote_are_kept) {
  does_some(4);
  say(4, wire::Outlook::leaves);
  EXPECT_THAT(orders(), SizeIs(1));
  wire::Progress keeps = progress(2, wire::Outlook::steady);
  keeps.slots = {{wire::kLeaseSlots, RangeSet(Range{0, 3}), {}}};
  leasing.on_progress(now, *status, PeerId{2}, keeps, false);
  EXPECT_THAT(orders(), IsEmpty()) << "its vote is not kept yet";
  say(2, wire::Outlook::steady, 0, {PeerId{4}});
  EXPECT_THAT(orders(), testing::ElementsAre(testing::Field(&wire::HandOver::released, true)));
}

TEST_F(HandOversOfOne, go_by_the_deadline_that_was_told_last) {
  constexpr double kSoon_s = 60, kLate_s = 2000;
  does_some(4);
  for (const std::uint64_t id : {1, 2, 3})
    leasing.on_progress(now, *status, PeerId{id}, progress(id, wire::Outlook::steady), false);
  for (const double last_s : {kSoon_s, kLate_s}) {
    hand_overs = HandOvers(7, 0, 1000 * kSumBytes);  // the transfer takes longer than the rest of the round
    for (const double told_s : {kSoon_s + kLate_s - last_s, last_s}) {
      wire::Progress leaves = progress(4, wire::Outlook::leaves);
      leaves.leaves_in_s = told_s;
      leaves.bandwidth = {1e8, 0, {}};
      status->hear(PeerId{4}, leaves);
      status->told(*status->process(PeerId{4}), {leaves.parameters});
      hand_overs.on_progress(now, PeerId{4}, leaves);
    }
    EXPECT_EQ(last_s == kSoon_s ? 1U : 0U, orders().size()) << "the round ends before the late one";
  }
}

TEST_F(HandOversOfOne, wait_where_nobody_stays) {
  does_some(4);
  for (const std::uint64_t id : {1, 2, 3}) say(id, wire::Outlook::at_risk);
  say(4, wire::Outlook::leaves);
  EXPECT_THAT(orders(), IsEmpty());
}

}  // namespace
}  // namespace tw::swarm
