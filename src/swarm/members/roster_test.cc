// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/roster.h"

#include "swarm/ballots/test_records.h"

namespace tw::swarm {
namespace {

using wire::PeerState;
using namespace std::chrono_literals;
using Addresses = std::vector<std::string>;

wire::Heartbeat says(PeerState peer_state) {
  wire::Heartbeat heartbeat;
  heartbeat.peer_state = peer_state;
  return heartbeat;
}

std::set<PeerId> followers(const Roster& roster) {
  std::set<PeerId> peers;
  for (const auto& [peer, incarnation] : roster.following()) peers.insert(peer);
  return peers;
}

TEST(Roster, dials_the_bootstrap_addresses_at_which_nobody_is_linked) {
  Roster roster(PeerId{1}, {"here", "there"});
  EXPECT_EQ((Addresses{"here", "there"}), roster.dials(kStart, {}));
  EXPECT_EQ(Addresses{}, roster.dials(kStart + 1s, {})) << "an answer is due first";
  roster.refused(kStart + 1s, "here");
  EXPECT_EQ(Addresses{"here"}, roster.dials(kStart + 2s, {}));
  roster.open({PeerId{2}, "here"});
  EXPECT_EQ(Addresses{"there"}, roster.dials(kStart + 1min, members({1, 2})));
  roster.is_own("there");
  EXPECT_EQ(Addresses{}, roster.dials(kStart + 2min, members({1, 2})));
}

TEST(Roster, has_asked_all_when_each_bootstrap_address_has_answered_or_failed) {
  EXPECT_TRUE(Roster(PeerId{1}, {}).has_asked_all());
  Roster roster(PeerId{1}, {"here", "there"});
  roster.dials(kStart, {});
  roster.refused(kStart + 1s, "here");
  EXPECT_FALSE(roster.has_asked_all());
  roster.open({PeerId{2}, "there"});
  EXPECT_FALSE(roster.has_asked_all()) << "it may know of a history";
  roster.heard(kStart + 1s, PeerId{2}, says(PeerState::fresh));
  EXPECT_TRUE(roster.has_asked_all());
}

TEST(Roster, dials_a_bootstrap_address_where_somebody_may_have_been_started_again) {
  Roster roster(PeerId{1}, {"p3"});
  roster.open(member(2));
  EXPECT_EQ(Addresses{"p3"}, roster.dials(kStart, {})) << "two that found each other know no founder";
  roster.open(member(3));
  EXPECT_EQ(Addresses{}, roster.dials(kStart + 1min, members({1, 2, 3})));
  roster.close(kStart + 2min, PeerId{3});
  int dialled = 0;
  for (Instant now = kStart + 2min; now < kStart + 12min; now += 250ms) {
    for (const std::string& address : roster.dials(now, members({1, 2}))) {
      EXPECT_EQ("p3", address);
      roster.refused(now, address);
      ++dialled;
    }
  }
  EXPECT_GT(dialled, 100) << "it is no member any more, and may be back at any time";
  EXPECT_LT(dialled, 140);
}

TEST(Roster, keeps_dialling_few_of_many_bootstrap_addresses_once_it_has_links) {
  Addresses many;
  for (int i = 0; i < 100; ++i) many.push_back("b" + std::to_string(i));
  Roster roster(PeerId{1}, many);
  EXPECT_EQ(100U, roster.dials(kStart, {}).size());
  roster.open(member(2));
  EXPECT_EQ(Roster::kFewBootstraps, roster.dials(kStart + 1min, members({1, 2})).size());
}

TEST(Roster, dials_a_bootstrap_address_under_which_it_is_linked_to_somebody_only_once) {
  Roster roster(PeerId{1}, {"localhost:7000"});
  roster.open({PeerId{2}, "127.0.0.1:7000"});
  EXPECT_EQ(Addresses{"localhost:7000"}, roster.dials(kStart, {})) << "it may be another one";
  roster.linked_there("localhost:7000");
  roster.refused(kStart, "localhost:7000");
  EXPECT_EQ(Addresses{}, roster.dials(kStart + 1min, {}));
  roster.open(member(3));
  roster.close(kStart + 1min, PeerId{2});
  EXPECT_EQ((Addresses{"127.0.0.1:7000", "localhost:7000"}), roster.dials(kStart + 2min, {}))
      << "that link may have been the one";
}

TEST(Roster, dials_whom_others_told_of) {
  Roster roster(PeerId{1}, {});
  roster.open(member(2));
  roster.learn(member(3));
  roster.learn(member(1));
  roster.learn({PeerId{4}, ""});
  EXPECT_EQ(Addresses{"p3"}, roster.dials(kStart, {}));
  roster.open(member(3));
  EXPECT_EQ((std::vector<PeerId>{PeerId{2}, PeerId{3}}), roster.open_peers());
  EXPECT_EQ(members({2, 3}), roster.linked());
}

TEST(Roster, dials_again_soon_after_a_link_was_lost_and_ever_less_often_when_refused) {
  Roster roster(PeerId{1}, {});
  roster.open(member(2));
  roster.close(kStart, PeerId{2});
  EXPECT_FALSE(roster.is_open(PeerId{2}));
  std::vector<Duration> gaps;
  Instant last = kStart;
  for (Instant now = kStart; gaps.size() < 9; now += 100ms) {
    if (roster.dials(now, members({1, 2})).empty()) continue;
    roster.refused(now, "p2");
    gaps.push_back(now - last);
    last = now;
  }
  EXPECT_EQ(200ms, gaps.front());
  EXPECT_TRUE(std::is_sorted(gaps.begin(), gaps.end()));
  EXPECT_EQ(5s, gaps.back());
}

TEST(Roster, forgets_who_never_answers_unless_it_is_a_member) {
  Roster roster(PeerId{1}, {});
  roster.learn(member(2));
  roster.hear(PeerId{9}, member(3));
  std::map<std::string, int> dialled;
  for (Instant now = kStart; now < kStart + 5min; now += 100ms) {
    for (const std::string& address : roster.dials(now, members({1, 2}))) {
      ++dialled[address];
      roster.refused(now, address);
    }
  }
  EXPECT_EQ(6, dialled["p3"]);
  EXPECT_GT(dialled["p2"], 50);
  EXPECT_EQ("", roster.process(PeerId{3}).address);
}

TEST(Roster, dials_a_former_member_for_minutes_unless_it_said_that_it_leaves) {
  Roster roster(PeerId{1}, {});
  for (const std::uint64_t id : {2, 3}) {
    roster.learn(member(id));
    roster.open(member(id));
  }
  roster.heard(kStart, PeerId{2}, says(PeerState::member));
  roster.heard(kStart, PeerId{3}, says(PeerState::leaving));
  for (const std::uint64_t id : {2, 3}) roster.close(kStart, PeerId{id});
  std::map<std::string, int> dialled;
  for (Instant now = kStart; now < kStart + 1h; now += 250ms) {
    for (const std::string& address : roster.dials(now, members({1}))) {
      ++dialled[address];
      roster.refused(now, address);
    }
  }
  EXPECT_EQ(6, dialled["p3"]);
  EXPECT_EQ(60, dialled["p2"]);
  EXPECT_EQ("", roster.process(PeerId{2}).address) << "an hour later it is forgotten";
}

TEST(Roster, remembers_a_bounded_number_of_those_that_one_peer_tells_of_and_forgets_them) {
  Roster roster(PeerId{1}, {});
  roster.open(member(2));
  for (std::uint64_t id = 10; id < 20'000; ++id) roster.hear(PeerId{2}, member(id));
  roster.hear(PeerId{3}, member(5));
  roster.hear(PeerId{3}, {PeerId{6}, std::string(wire::kMostAddressBytes + 1, 'a')});
  EXPECT_EQ(Roster::kMostToldOf + 1, roster.dials(kStart, {}).size());
  EXPECT_EQ("p5", roster.process(PeerId{5}).address);
  const std::uint64_t held = roster.held_bytes();
  EXPECT_LE(held, (Roster::kMostToldOf + 2) * Roster::kEntryBytes);
  for (Instant now = kStart; now < kStart + 5min; now += 1s) roster.dials(now, {});
  EXPECT_LT(roster.held_bytes(), held / 100);
}

TEST(Roster, keeps_nothing_of_the_former_addresses_of_a_peer) {
  Roster roster(PeerId{1}, {});
  for (std::uint64_t i = 0; i < 100; ++i) {
    roster.hear(PeerId{2}, {PeerId{3}, "p" + std::to_string(1000 + i)});
    roster.dials(kStart, {});
  }
  EXPECT_LE(roster.held_bytes(), 2 * Roster::kEntryBytes);
}

TEST(Roster, knows_who_follows_the_history) {
  Roster roster(PeerId{1}, {});
  for (const std::uint64_t id : {2, 3, 4, 5}) roster.open(member(id));
  roster.heard(kStart, PeerId{3}, says(PeerState::fresh));
  roster.heard(kStart, PeerId{4}, says(PeerState::syncing));
  roster.heard(kStart, PeerId{5}, says(PeerState::ready));
  EXPECT_EQ((std::set<PeerId>{PeerId{2}, PeerId{5}}), followers(roster));
  roster.now_follows(member(3));
  roster.now_follows(member(4));
  EXPECT_EQ((std::set<PeerId>{PeerId{2}, PeerId{3}, PeerId{5}}), followers(roster));
  roster.close(kStart, PeerId{3});
  EXPECT_EQ((std::set<PeerId>{PeerId{2}, PeerId{5}}), followers(roster));
}

TEST(Roster, says_by_its_version_that_somebody_follows_or_stands_otherwise) {
  Roster roster(PeerId{1}, {});
  std::uint64_t version = roster.version();
  const auto changes = [&] { return std::exchange(version, roster.version()) != roster.version(); };
  roster.learn(member(2));
  EXPECT_FALSE(changes());
  roster.open(member(2));
  EXPECT_TRUE(changes());
  roster.heard(kStart, PeerId{2}, says(PeerState::member));
  EXPECT_TRUE(changes());
  roster.heard(kStart, PeerId{2}, says(PeerState::member));
  EXPECT_FALSE(changes()) << "nothing new";
  wire::Heartbeat busy = says(PeerState::member);
  busy.presence = wire::Presence::away;
  roster.heard(kStart, PeerId{2}, busy);
  EXPECT_TRUE(changes());
  roster.heard(kStart, PeerId{2}, says(PeerState::leaving));
  EXPECT_TRUE(changes());
  wire::Member another = member(2);
  ++another.incarnation;
  roster.open(another);
  EXPECT_TRUE(changes());
  EXPECT_EQ(another.incarnation, roster.following().at(PeerId{2}));
}

TEST(Roster, counts_what_it_holds_while_peers_come_and_go) {
  Roster roster(PeerId{1}, {});
  const std::uint64_t nothing = roster.held_bytes();
  for (int tries = 0; tries < 3; ++tries) {
    wire::Member told = member(2);
    roster.hear(PeerId{3}, told);
    const std::uint64_t before = roster.held_bytes();
    told.address += "0";
    roster.hear(PeerId{4}, told);
    EXPECT_EQ(before + 1, roster.held_bytes());
    for (int dials = 0; dials < 100; ++dials) (void)roster.dials(kStart + 1h * tries + 10s * dials, {});
    EXPECT_EQ(nothing, roster.held_bytes()) << "forgotten";
  }
}

TEST(Roster, remembers_more_hearsay_of_one_teller_once_the_former_was_linked) {
  Roster roster(PeerId{1}, {});
  for (std::uint64_t id = 10; id < 10 + Roster::kMostToldOf; ++id) roster.hear(PeerId{2}, member(id));
  const auto due = [&](Duration after) { return roster.dials(kStart + after, {}).size(); };
  roster.hear(PeerId{2}, member(5000));
  EXPECT_EQ(Roster::kMostToldOf, due(0s)) << "that is too many";
  roster.open(member(10));
  roster.hear(PeerId{2}, member(5000));
  EXPECT_EQ(1U, due(1s));
}

TEST(Roster, names_some_of_many_linked_peers_from_any_place_on) {
  Roster roster(PeerId{1}, {});
  EXPECT_TRUE(roster.linked(7, 2).empty());
  for (const std::uint64_t id : {2, 3, 4}) roster.open(member(id));
  EXPECT_EQ(members({4, 2}), roster.linked(5, 2));
  EXPECT_EQ(members({2, 3, 4}), roster.linked(5, 9));
}

TEST(Roster, forgets_what_a_peer_said_when_its_link_is_gone) {
  Roster roster(PeerId{1}, {});
  roster.open(member(2));
  roster.heard(kStart, PeerId{2}, says(PeerState::leaving));
  EXPECT_EQ(3s, roster.heartbeat_age(kStart + 3s, PeerId{2}));
  roster.close(kStart + 3s, PeerId{2});
  EXPECT_FALSE(roster.last_heartbeat(PeerId{2}).has_value());
}

TEST(Roster, tries_a_peer_anew_that_somebody_else_reaches) {
  Roster roster(PeerId{1}, {});
  Instant now = Instant{} + std::chrono::hours(1);
  const wire::Member other{PeerId{2}, "p2"};
  const std::vector<wire::Member> members = {{PeerId{1}, "p1"}};
  roster.open(other);
  roster.close(now, PeerId{2});
  const auto fails = [&](int times) {
    for (int i = 0; i < times; ++i) {
      now += std::chrono::seconds(6);
      if (roster.dials(now, members) == std::vector<std::string>{"p2"}) roster.refused(now, "p2");
    }
  };
  fails(5);
  roster.hear(PeerId{3}, other);
  fails(5);
  now += std::chrono::seconds(6);
  EXPECT_EQ(std::vector<std::string>{"p2"}, roster.dials(now, members)) << "not given up yet";
}

}  // namespace
}  // namespace tw::swarm
