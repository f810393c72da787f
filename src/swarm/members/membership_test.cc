// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/membership.h"

#include <gmock/gmock.h>

#include "swarm/ballots/quorum.h"
#include "swarm/ballots/test_records.h"

namespace tw::swarm {
namespace {

using wire::PeerState;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

wire::Member process(std::uint64_t id, std::uint64_t incarnation) {
  wire::Member it = member(id);
  it.incarnation = incarnation;
  return it;
}

/// Peer 1's view of the others.
struct View {
  void begin(const wire::Record& record) {
    history.begin(record);
    membership.begin_round(now, record);
  }

  std::vector<wire::Member> members() const {
    return history.head() ? history.head()->members : std::vector<wire::Member>{};
  }

  void open(std::uint64_t id, bool founds = false) {
    membership.on_open(now, member(id), {.founds = founds});
  }

  void close(std::uint64_t id) { membership.on_close(now, PeerId{id}, members()); }

  wire::Heartbeat hears(std::uint64_t id, wire::Heartbeat beat) {
    membership.on_sign_of_life(now, PeerId{id});
    return membership.on_heartbeat(now, PeerId{id}, beat, history);
  }

  wire::Heartbeat hears(std::uint64_t id, PeerState peer_state) {
    return hears(id, wire::Heartbeat{.peer_state = peer_state});
  }

  wire::Member self = member(1);
  Membership membership{self, {"p2"}};
  History history;
  Instant now = kStart;
};

TEST(Membership, counts_a_linked_member_as_here_while_it_follows) {
  View view;
  view.begin(head_of(members({1, 2, 3})));
  EXPECT_TRUE(view.membership.is_here(member(1)));
  view.open(2);
  view.hears(2, PeerState::syncing);
  EXPECT_FALSE(view.membership.is_here(member(2))) << "it takes the state of others";
  view.hears(2, PeerState::ready);
  EXPECT_TRUE(view.membership.is_here(member(2)));
  EXPECT_FALSE(view.membership.is_here(process(2, 9))) << "another process";
  view.close(2);
  EXPECT_FALSE(view.membership.is_here(member(2)));
  EXPECT_EQ((std::map<PeerId, std::uint64_t>{{PeerId{1}, 0}}), view.membership.live());
}

TEST(Membership, takes_a_member_that_says_it_is_fresh_for_one_the_record_has_not_reached) {
  View view;
  view.open(2);
  EXPECT_EQ(PeerState::fresh, view.hears(2, PeerState::fresh).peer_state);
  view.begin(head_of(members({1, 2})));
  EXPECT_EQ(PeerState::member, view.hears(2, PeerState::fresh).peer_state);
  EXPECT_TRUE(view.membership.is_here(member(2)));
}

TEST(Membership, presumes_a_member_live_that_was_not_linked_yet_for_a_while) {
  View view;
  view.begin(head_of(members({1, 2, 3})));
  EXPECT_TRUE(view.membership.presumed_live(view.now, PeerId{2}));
  EXPECT_FALSE(view.membership.is_meshed(view.now, view.members()));
  view.open(3);
  view.close(3);
  EXPECT_FALSE(view.membership.presumed_live(view.now, PeerId{3})) << "its link was lost";
  view.now += 2s;
  EXPECT_FALSE(view.membership.presumed_live(view.now, PeerId{2}));
  EXPECT_TRUE(view.membership.is_meshed(view.now, view.members()));
}

TEST(Membership, finds_peers_silent_and_measures_round_trips) {
  View view;
  view.open(2);
  view.open(3);
  view.membership.step(view.now, false);
  wire::Heartbeat beat;
  view.membership.address(beat, view.now, PeerId{2});
  EXPECT_EQ(250U, beat.next_ms);
  wire::Heartbeat answer{.peer_state = PeerState::ready};
  answer.echo_ns = beat.sent_ns;
  answer.echo_delay_ns = 30'000'000;
  view.now += 80ms;
  view.hears(2, answer);
  EXPECT_EQ(50ms, view.membership.round_trip(PeerId{2}));
  std::vector<Detector::Silence> silent;
  for (int i = 0; i < 10 && silent.empty(); ++i) {
    view.now += 250ms;
    view.membership.on_sign_of_life(view.now, PeerId{2});
    silent = view.membership.step(view.now, false);
  }
  ASSERT_EQ(1U, silent.size());
  EXPECT_EQ(PeerId{3}, silent.front().peer);
}

TEST(Membership, has_the_round_sent_again_to_one_that_was_behind) {
  View view;
  view.begin(head_of(members({1, 2})));
  view.open(2);
  view.hears(2, PeerState::syncing);
  EXPECT_FALSE(view.membership.take_resend(view.now, PeerId{2}));
  view.hears(2, PeerState::member);
  EXPECT_TRUE(view.membership.take_resend(view.now, PeerId{2}));
  EXPECT_FALSE(view.membership.take_resend(view.now, PeerId{2})) << "once";
}

TEST(Membership, names_those_that_a_majority_lacks) {
  View view;
  view.begin(head_of(members({1, 2, 3})));
  EXPECT_THAT(view.membership.missing_for_a_majority(view.members()), ElementsAre(PeerId{2}, PeerId{3}));
  view.open(2);
  view.hears(2, PeerState::member);
  EXPECT_THAT(view.membership.missing_for_a_majority(view.members()), IsEmpty());
}

TEST(Membership, waits_at_the_end_for_members_that_do_not_say_they_are_there) {
  View view;
  wire::Record last = head_of(members({1, 2, 3}));
  last.last = true;
  view.begin(last);
  view.open(2);
  view.open(3);
  view.hears(2, PeerState::member);
  wire::Heartbeat beat{.peer_state = PeerState::member};
  beat.head_record = view.history.digest();
  view.hears(3, beat);
  EXPECT_THAT(view.membership.lacking(view.history.digest(), view.members()), ElementsAre(PeerId{2}));
}

TEST(Membership, waits_at_the_end_for_peers_that_fetch_the_state) {
  View view;
  view.begin(head_of(members({1, 2})));
  view.open(3);
  view.open(4);
  view.hears(3, PeerState::syncing);
  view.hears(4, PeerState::fresh);
  const Digest last = view.history.digest();
  EXPECT_THAT(view.membership.lacking(last, view.members()), ElementsAre(PeerId{2}, PeerId{3}));
  EXPECT_TRUE(view.membership.roster().fetches(PeerId{3}));
  EXPECT_FALSE(view.membership.roster().fetches(PeerId{4})) << "it is new";
  view.hears(3, wire::Heartbeat{.peer_state = PeerState::syncing, .head_record = last});
  EXPECT_THAT(view.membership.lacking(last, view.members()), ElementsAre(PeerId{2}));
}

TEST(Membership, remembers_who_had_the_last_record_before_it_came_here) {
  View view;
  view.begin(head_of(members({1, 2, 3})));
  view.open(3);
  wire::Record last = head_of(members({1, 2, 3}));
  ++last.round;
  last.last = true;
  view.hears(3, wire::Heartbeat{.peer_state = PeerState::member, .head_record = digest_of(last)});
  view.close(3);
  view.begin(last);
  EXPECT_THAT(view.membership.lacking(digest_of(last), view.members()), ElementsAre(PeerId{2}));
}

TEST(Membership, bars_a_process_that_another_one_replaced_and_one_that_took_an_id) {
  View view;
  view.membership.on_open(view.now, process(2, 5), {});
  const std::vector<wire::Member> before = {member(1), process(3, 1)};
  const std::vector<wire::Member> after = {member(1), process(2, 6), process(3, 2)};
  EXPECT_THAT(view.membership.squatters(before, after), ElementsAre(PeerId{2}));
  EXPECT_FALSE(view.membership.may_link(view.now, process(3, 1), after)) << "3 goes on as another process";
  view.membership.bar(view.now, PeerId{2});
  view.close(2);
  EXPECT_FALSE(view.membership.may_link(view.now, process(2, 5), after));
  EXPECT_TRUE(view.membership.may_link(view.now, process(2, 6), after));
  EXPECT_TRUE(view.membership.may_link(view.now + 6s, process(2, 5), after));
}

TEST(Membership, knows_the_founder_while_it_is_linked) {
  View view;
  view.open(2, true);
  EXPECT_TRUE(view.membership.has_founder(PeerId{2}));
  EXPECT_FALSE(view.membership.has_founder(PeerId{3}));
  view.close(2);
  EXPECT_FALSE(view.membership.has_founder(PeerId{2}));
}

TEST(Membership, believes_a_commit_for_a_while_that_no_heartbeat_confirms) {
  View view;
  wire::Rank further{};
  further.had_company = true;
  further.majority_samples = 640;
  further.record = kMean;
  view.membership.on_commit(view.now, further);
  wire::Rank less = further;
  less.majority_samples = 64;
  view.membership.on_commit(view.now + 1s, less);
  EXPECT_EQ(640U, view.membership.best_told(view.now + 1s).majority_samples);
  EXPECT_EQ(0U, view.membership.best_told(view.now + 2s).majority_samples);
  view.open(2);
  wire::Heartbeat beat{.peer_state = PeerState::member};
  beat.had_company = true;
  beat.majority_samples = 320;
  beat.head_record = kMean;
  view.hears(2, beat);
  EXPECT_EQ(320U, view.membership.best_told(view.now + 2s).majority_samples);
}

TEST(Membership, names_joiners_that_are_waited_for_once) {
  View view;
  view.open(2);
  wire::Heartbeat beat{.peer_state = PeerState::syncing};
  beat.catching_up.lost_ground = Holdback::kLostGround;
  view.hears(2, beat);
  EXPECT_THAT(view.membership.hold_back(view.now), ElementsAre(PeerId{2}));
  EXPECT_THAT(view.membership.hold_back(view.now), IsEmpty());
  EXPECT_THAT(view.membership.held_back_for(), ElementsAre(PeerId{2}));
  view.close(2);
  view.membership.hold_back(view.now);
  EXPECT_THAT(view.membership.held_back_for(), IsEmpty());
}

TEST(Membership, introduces_a_newcomer_to_all_where_links_are_few_and_to_some_where_they_are_many) {
  View view;
  for (std::uint64_t id = 2; id <= 30; ++id) view.open(id);
  EXPECT_EQ(29U, view.membership.introductions(PeerId{99}, {}, false).size());
  EXPECT_FALSE(view.membership.gossip(view.now));
  for (std::uint64_t id = 31; id <= 60; ++id) view.open(id);
  EXPECT_EQ(9U, view.membership.introductions(PeerId{99}, PeerId{2}, false).size()) << "and the leader";
  EXPECT_EQ(59U, view.membership.introductions(PeerId{99}, PeerId{1}, false).size()) << "it leads itself";
  EXPECT_EQ(59U, view.membership.introductions(PeerId{99}, {}, true).size());
  int gossips = 0;
  for (int tick = 0; tick < 1600; ++tick) gossips += view.membership.gossip(view.now += 250ms) ? 1 : 0;
  EXPECT_NEAR(100, gossips, 40) << "once in sixteen ticks";
}

TEST(Membership, keeps_a_bounded_number_of_notes) {
  View view;
  std::uint64_t after_some = 0;
  for (std::uint64_t id = 2; id < 20'000; ++id) {
    view.open(id);
    view.membership.on_fresh(PeerId{id});
    view.close(id);
    if (id == 10'000) after_some = view.membership.held_bytes();
  }
  EXPECT_GT(after_some, 0U);
  EXPECT_LE(view.membership.held_bytes(), after_some + Membership::kNoteBytes * 4096);
  EXPECT_THAT(view.membership.fresh(), IsEmpty());
}

TEST(Membership, closes_no_link_that_is_not_there) {
  View view;
  EXPECT_DEATH(view.close(2), "is_open");
  EXPECT_DEATH(view.membership.bar(view.now, PeerId{2}), "is_open");
}

TEST(Membership, keeps_what_a_process_said_of_itself_over_rounds_but_not_what_another_one_did) {
  View view;
  view.open(2);
  view.membership.hear(PeerId{2}, wire::Progress{.bandwidth = {5, 6, {}}, .outlook = wire::Outlook::at_risk});
  view.hears(2, PeerState::leaving);
  view.begin(head_of(members({1, 2, 3})));
  view.begin(head_of(members({1, 2})));
  EXPECT_EQ((Stance{.leaving = true, .bandwidth = {5, 6, {}}}), view.membership.stances().of(PeerId{2}));
  view.close(2);
  view.open(2);
  EXPECT_EQ(Stance{}, view.membership.stances().of(PeerId{2}));
}

}  // namespace
}  // namespace tw::swarm
