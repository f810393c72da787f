// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/peer_status.h"

#include <gmock/gmock.h>

#include "swarm/ballots/quorum.h"
#include "swarm/ballots/test_records.h"

namespace tw::swarm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Status = PeerStatus::Status;

const PeerStatus::Word kAtTheHead{kParameters};

/// 1 leads the round of 1, 2 and 3.
struct Round7 {
  explicit Round7(bool asks_first = false, const Stances& before = {})
      : status(member(1), members({1, 2, 3}), asks_first, before) {
    here({1, 2, 3});
    tells(1);
  }

  std::vector<PeerId> here(const std::vector<std::uint64_t>& ids) {
    PeerStatus::Live live;
    for (const std::uint64_t id : ids) live.emplace(PeerId{id}, 0);
    return status.set_live(live, [](PeerId) { return false; });
  }

  bool tells(std::uint64_t id, const PeerStatus::Word& word = kAtTheHead) {
    return status.told(member(id), word);
  }

  Status of(std::uint64_t id) const { return status.of(PeerId{id}); }

  PeerStatus status;
};

TEST(PeerStatus, has_every_member_that_can_be_reached_vote) {
  Round7 round;
  EXPECT_THAT(round.status.present(), ElementsAre(PeerId{1}, PeerId{2}, PeerId{3}));
  EXPECT_THAT(round.here({1, 2}), ElementsAre(PeerId{3}));
  EXPECT_EQ(Status::absent, round.of(3)) << "it had no part";
  EXPECT_TRUE(round.status.has_quorum());
  round.here({1});
  EXPECT_FALSE(round.status.has_quorum());
  round.here({1, 3});
  EXPECT_EQ(Status::member, round.of(3));
  EXPECT_TRUE(round.status.has_quorum());
}

TEST(PeerStatus, excludes_a_peer_that_went_with_what_it_had) {
  Round7 round;
  round.tells(2);
  round.here({1, 3});
  EXPECT_EQ(Status::excluded, round.of(2));
  round.here({1, 2});
  EXPECT_EQ(Status::excluded, round.of(2)) << "what it had was given to others";
  EXPECT_FALSE(round.status.has_quorum());
  EXPECT_TRUE(round.status.would_have_quorum());
  EXPECT_THAT(round.status.uncounted(), ElementsAre(PeerId{2}));
  PeerStatus of_the_plan(member(1), members({1, 2}), false);
  of_the_plan.set_live({{PeerId{1}, 0}, {PeerId{2}, 0}}, {});
  of_the_plan.set_live({{PeerId{1}, 0}}, [](PeerId) { return true; });
  EXPECT_EQ(Status::excluded, of_the_plan.of(PeerId{2}));
}

TEST(PeerStatus, takes_another_process_under_the_id_of_a_member_for_none) {
  Round7 round;
  round.status.set_live({{PeerId{1}, 0}, {PeerId{2}, 9}}, [](PeerId) { return false; });
  EXPECT_EQ(Status::linked, round.of(2));
  EXPECT_THAT(round.status.present(), ElementsAre(PeerId{1}));
  wire::Member other = member(2);
  other.incarnation = 9;
  EXPECT_TRUE(round.status.told(other, kAtTheHead));
  EXPECT_EQ(Status::candidate, round.of(2)) << "another process under this id may have used its slots";
  EXPECT_THAT(round.status.eligible(), ElementsAre(PeerId{1}));
  EXPECT_THAT(round.status.next_members(), ElementsAre(member(1), other));
}

TEST(PeerStatus, lets_a_joiner_work_that_neither_votes_nor_reduces) {
  Round7 round;
  round.here({1, 2, 3, 4});
  EXPECT_EQ(Status::linked, round.of(4));
  EXPECT_TRUE(round.tells(4));
  EXPECT_FALSE(round.tells(4)) << "it is known";
  EXPECT_EQ(Status::early, round.of(4));
  EXPECT_THAT(round.status.eligible(), ElementsAre(PeerId{1}, PeerId{4}));
  EXPECT_THAT(round.status.owners(), ElementsAre(PeerId{1}));
  EXPECT_THAT(round.status.workers(), ElementsAre(PeerId{1}, PeerId{2}, PeerId{3}, PeerId{4}));
  EXPECT_THAT(round.status.participants(), ElementsAre(PeerId{1}, PeerId{2}, PeerId{3}, PeerId{4}));
}

TEST(PeerStatus, lets_nobody_work_under_a_later_ballot_that_did_not_promise) {
  Round7 round(true);
  for (const std::uint64_t id : {2, 3}) round.tells(id);
  EXPECT_THAT(round.status.eligible(), IsEmpty());
  round.status.promised(PeerId{2});
  EXPECT_THAT(round.status.eligible(), ElementsAre(PeerId{2}));
  round.here({1, 2, 3, 4});
  round.tells(4);
  EXPECT_EQ(Status::candidate, round.of(4)) << "it is not known which slots it has used";
}

TEST(PeerStatus, gives_no_work_to_other_parameters_and_no_seat_to_one_that_leaves) {
  Round7 round;
  round.tells(2, {kMean});
  round.tells(3);
  round.status.hear(PeerId{3}, wire::Progress{.leaving = true});
  EXPECT_THAT(round.status.eligible(), ElementsAre(PeerId{1}, PeerId{3}));
  EXPECT_THAT(round.status.participants(), ElementsAre(PeerId{1}, PeerId{3}));
  EXPECT_THAT(round.status.next_members(), ElementsAre(member(1)));
  round.tells(2);
  EXPECT_THAT(round.status.eligible(), ElementsAre(PeerId{1}, PeerId{2}, PeerId{3}));
}

TEST(PeerStatus, lets_no_peer_reduce_that_may_be_gone_soon_where_half_of_the_others_can) {
  Round7 round;
  const auto expects = [&](std::uint64_t id, wire::Outlook outlook) {
    round.status.hear(PeerId{id}, wire::Heartbeat{.outlook = outlook});
  };
  for (const std::uint64_t id : {2, 3}) round.tells(id);
  EXPECT_THAT(round.status.owners(), ElementsAre(PeerId{1}, PeerId{2}, PeerId{3}));
  expects(3, wire::Outlook::at_risk);
  EXPECT_THAT(round.status.owners(), ElementsAre(PeerId{1}, PeerId{2}));
  expects(2, wire::Outlook::at_risk);
  EXPECT_THAT(round.status.owners(), ElementsAre(PeerId{1}, PeerId{2}, PeerId{3})) << "too much for one";
  expects(2, wire::Outlook::leaves);
  EXPECT_THAT(round.status.owners(), ElementsAre(PeerId{1}));
  expects(1, wire::Outlook::leaves);
  expects(3, wire::Outlook::leaves);
  EXPECT_THAT(round.status.owners(), ElementsAre(PeerId{1}, PeerId{2}, PeerId{3})) << "nobody else is there";
}

TEST(PeerStatus, counts_on_what_a_process_said_before_this_round_or_in_a_heartbeat) {
  Stances before;
  before.hear(PeerId{2}, wire::Progress{.bandwidth = {5, 5, {}}, .outlook = wire::Outlook::at_risk});
  Round7 round(false, before);
  EXPECT_THAT(round.status.next_members(), ElementsAre(member(1), member(3), member(2)));
  EXPECT_EQ(5, round.status.stance(PeerId{2}).bandwidth.up_bytes_per_s);
  round.status.hear(PeerId{2}, wire::Heartbeat{.peer_state = wire::PeerState::leaving});
  EXPECT_THAT(round.status.next_members(), ElementsAre(member(1), member(3)));
  EXPECT_EQ(5, round.status.stance(PeerId{2}).bandwidth.up_bytes_per_s);
  round.status.hear(PeerId{2}, wire::Heartbeat{.peer_state = wire::PeerState::syncing});
  EXPECT_TRUE(round.status.leaves(PeerId{2})) << "it does not take that back";
  round.here({1, 3});
  round.here({1, 2, 3});
  EXPECT_FALSE(round.status.leaves(PeerId{2})) << "it may be another process";
}

TEST(PeerStatus, has_peers_vote_whose_threads_are_away_and_names_them_last_or_not_at_all) {
  using wire::Presence;
  Round7 round;
  round.tells(3);  // 2 has not applied the last update, so it says nothing
  round.status.hear(PeerId{1}, wire::Heartbeat{.presence = Presence::here});
  round.status.hear(PeerId{2}, wire::Heartbeat{.presence = Presence::away});
  EXPECT_THAT(round.status.next_members(), ElementsAre(member(1), member(3), member(2)));
  round.status.hear(PeerId{2}, wire::Heartbeat{.presence = Presence::full});
  EXPECT_THAT(round.status.next_members(), ElementsAre(member(1), member(3)));
  EXPECT_THAT(round.status.present(), ElementsAre(PeerId{1}, PeerId{2}, PeerId{3}));
  EXPECT_THAT(round.status.participants(), ElementsAre(PeerId{1}, PeerId{2}, PeerId{3}));
  EXPECT_THAT(round.status.owners(), ElementsAre(PeerId{1}, PeerId{3}));
}

TEST(PeerStatus, knows_who_is_about_to_have_the_parameters_of_the_leader) {
  Round7 round;
  round.tells(3);
  for (const std::uint64_t id : {1, 2, 3})
    round.status.hear(PeerId{id}, wire::Heartbeat{.presence = wire::Presence::here});
  EXPECT_TRUE(is_updating(round.status, PeerId{2}));
  EXPECT_FALSE(is_updating(round.status, PeerId{3}));
  round.tells(2, {Digest{}});
  EXPECT_TRUE(is_updating(round.status, PeerId{2})) << "it works, and has not told which ones it has";
  round.status.hear(PeerId{2}, wire::Heartbeat{.presence = wire::Presence::away});
  EXPECT_FALSE(is_updating(round.status, PeerId{2})) << "nobody waits for it";
  round.status.hear(PeerId{2}, wire::Heartbeat{.presence = wire::Presence::here});
  round.here({1, 3});
  EXPECT_FALSE(is_updating(round.status, PeerId{2}));
}

TEST(PeerStatus, has_a_refused_peer_vote_and_an_excluded_one_not) {
  Round7 round;
  for (const std::uint64_t id : {2, 3}) round.tells(id);
  EXPECT_TRUE(round.status.refuse(PeerId{2}));
  EXPECT_FALSE(round.status.refuse(PeerId{2})) << "it is refused already";
  EXPECT_TRUE(round.status.counts(PeerId{2}));
  EXPECT_THAT(round.status.present(), ElementsAre(PeerId{1}, PeerId{2}, PeerId{3}));
  EXPECT_THAT(round.status.eligible(), ElementsAre(PeerId{1}, PeerId{3}));
  round.status.exclude(PeerId{2});
  EXPECT_FALSE(round.status.counts(PeerId{2}));
  EXPECT_THAT(round.status.present(), ElementsAre(PeerId{1}, PeerId{3}));
  EXPECT_TRUE(round.status.has_refused());
}

TEST(PeerStatus, knows_no_way_back) {
  Round7 round;
  round.status.exclude(PeerId{2});
  EXPECT_DEATH(round.status.refuse(PeerId{2}), "counts");
  EXPECT_DEATH(round.status.exclude(PeerId{2}), "counts");
  EXPECT_DEATH(round.tells(4), "is_reachable");
  EXPECT_DEATH(PeerStatus(member(4), members({1, 2}), false), "names");
}

TEST(PeerStatus, remembers_a_bounded_number_of_newcomers) {
  PeerStatus status(member(1), members({1}), false);
  PeerStatus::Live live{{PeerId{1}, 0}};
  for (std::uint64_t id = 2; id < PeerStatus::kMostNewcomers + 10; ++id) live.emplace(PeerId{id}, 0);
  status.set_live(live, {});
  for (const auto& [peer, incarnation] : live) {
    if (status.has_room_for(peer)) status.told(member(peer.value), kAtTheHead);
  }
  EXPECT_EQ(PeerStatus::kMostNewcomers, status.candidates().size());
}

}  // namespace
}  // namespace tw::swarm
