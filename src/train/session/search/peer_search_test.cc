// SPDX-License-Identifier: Apache-2.0
#include "train/session/search/peer_search.h"

#include <gtest/gtest.h>

namespace tw::train {
namespace {

using world::Refusal;
using namespace std::chrono_literals;

constexpr Instant kOutset = Instant{} + 1h;

PeerSearch joiner(std::vector<std::string> join) {
  const bool founds = join.empty();
  return PeerSearch({.self = PeerId{7}, .join = std::move(join), .founds = founds, .patience = 60s});
}

Refusal rejected(Refusal::Code code, PeerId peer = {}) { return {"no", code, peer}; }

TEST(PeerSearch, gives_up_where_nobody_was_reached_and_says_what_it_heard_last) {
  PeerSearch search = joiner({"a:1"});
  EXPECT_EQ(std::nullopt, search.left(kOutset));
  EXPECT_EQ(std::nullopt, search.gives_up(kOutset, {}));
  EXPECT_EQ(kGiveUpJoining - 10s, search.left(kOutset + 10s));
  search.was_rejected(kOutset, "a:1", rejected(Refusal::Code::taken, PeerId{9}));
  EXPECT_EQ("nobody who has the state of the run can be reached at a:1 for 30 s: a:1 answers: no",
            search.gives_up(kOutset + kGiveUpJoining, {}));
}

TEST(PeerSearch, searches_anew_once_somebody_was_there) {
  PeerSearch search = joiner({"a:1"});
  search.nobody_answered("cannot connect to a:1");
  EXPECT_EQ(std::nullopt, search.gives_up(kOutset, {}));
  EXPECT_EQ(std::nullopt, search.gives_up(kOutset + 29s, {.linked = true}));
  EXPECT_EQ(std::nullopt, search.left(kOutset + 29s));
  EXPECT_EQ(std::nullopt, search.gives_up(kOutset + 30s, {}));
  EXPECT_EQ(std::nullopt, search.gives_up(kOutset + 59s, {}));
  EXPECT_EQ("nobody who has the state of the run can be reached at a:1 for 30 s; is a peer running there?",
            search.gives_up(kOutset + 60s, {}));
}

TEST(PeerSearch, is_over_neither_while_a_state_is_put_in_place_nor_for_whoever_begins_the_run) {
  PeerSearch syncing = joiner({"a:1"});
  EXPECT_EQ(std::nullopt, syncing.gives_up(kOutset, {wire::PeerState::syncing, true, false, true}));
  EXPECT_EQ(std::nullopt, syncing.left(kOutset));
  EXPECT_EQ(std::nullopt, syncing.gives_up(kOutset, {wire::PeerState::syncing, true}));
  EXPECT_EQ(60s, syncing.left(kOutset)) << "linked, but to nobody who has the state";
  for (const std::vector<std::string>& join : {std::vector<std::string>{}, {"b:1"}}) {
    PeerSearch founder({.self = PeerId{7}, .join = join, .founds = true, .patience = 60s});
    EXPECT_EQ(std::nullopt, founder.gives_up(kOutset, {}));
    EXPECT_EQ(std::nullopt, founder.left(kOutset));
  }
}

TEST(PeerSearch, of_a_peer_that_returns_lasts_for_the_patience_of_the_run) {
  PeerSearch search({.self = PeerId{7}, .join = {"a:1"}, .returns = true, .patience = 300s});
  EXPECT_EQ(std::nullopt, search.gives_up(kOutset, {}));
  EXPECT_EQ(std::nullopt, search.gives_up(kOutset + 299s, {}));
  EXPECT_FALSE(search.may_try_again());
  EXPECT_TRUE(search.gives_up(kOutset + 300s, {}));
  EXPECT_TRUE(search.may_try_again());
}

TEST(PeerSearch, another_start_is_of_use_to_a_peer_that_returns_alone) {
  PeerSearch search = joiner({"a:1"});
  search.gives_up(kOutset, {});
  EXPECT_TRUE(search.gives_up(kOutset + 30s, {}));
  EXPECT_FALSE(search.may_try_again()) << "whoever never was in the run has a wrong address";
}

// storm 9787: the founder was stopped for 31 s before anybody had taken its state, and all others gave up.
TEST(PeerSearch, of_a_joiner_that_has_met_the_run_lasts_for_its_patience) {
  PeerSearch search = joiner({"a:1"});
  const PeerSearch::Situation lost{.peer_state = wire::PeerState::syncing, .linked = true};
  EXPECT_EQ(std::nullopt, search.gives_up(kOutset, {}));
  EXPECT_EQ(kGiveUpJoining, search.left(kOutset));
  EXPECT_EQ(std::nullopt, search.gives_up(kOutset + 1s, lost));
  EXPECT_EQ(59s, search.left(kOutset + 1s));
  EXPECT_EQ(std::nullopt, search.gives_up(kOutset + 59s, lost));
  EXPECT_TRUE(search.gives_up(kOutset + 60s, lost));
}

TEST(PeerSearch, ends_when_another_process_has_its_id_for_good) {
  PeerSearch search = joiner({"a:1"});
  const auto is_final = [&](Duration after, PeerId taken) {
    search.was_rejected(kOutset + after, "a:1", rejected(Refusal::Code::taken, taken));
    return search.is_final(kOutset + after, "a:1", rejected(Refusal::Code::taken, taken), {});
  };
  EXPECT_FALSE(is_final(0s, PeerId{8})) << "that is another peer";
  EXPECT_FALSE(is_final(5s, PeerId{7}));
  EXPECT_FALSE(is_final(14s, PeerId{7})) << "the process before it may be gone without a word";
  EXPECT_FALSE(is_final(15s, PeerId{7}));
  EXPECT_TRUE(is_final(16s, PeerId{7}));
}

// A machine stood still, and another process came in its place. When it went on, it was refused, and trained
// beside the run for ever.
TEST(PeerSearch, is_replaced_when_most_members_refuse_its_id_for_longer_than_a_squatter_is_barred) {
  const std::vector<std::string> others = {"a:1", "b:1", "c:1"};
  PeerSearch search = joiner({});
  const auto hears = [&](Duration after, const std::string& from, PeerId taken = PeerId{7}) {
    search.was_rejected(kOutset + after, from, rejected(Refusal::Code::taken, taken));
    return search.is_replaced(kOutset + after, others);
  };
  EXPECT_FALSE(hears(0s, "a:1"));
  EXPECT_FALSE(hears(1s, "b:1")) << "the squatter is being turned away";
  EXPECT_FALSE(hears(6s, "a:1")) << "one of three";
  EXPECT_TRUE(hears(7s, "b:1"));
  search.was_admitted("a:1");
  EXPECT_FALSE(hears(8s, "b:1")) << "one of three";
  EXPECT_FALSE(hears(8s, "c:1", PeerId{8})) << "its own twin of another peer";
  EXPECT_FALSE(hears(9s, "a:1")) << "once since it was linked there";
  EXPECT_FALSE(hears(9s, "d:1")) << "no member";
  EXPECT_TRUE(hears(15s, "a:1"));
  EXPECT_FALSE(hears(60s, "a:1")) << "long after the others: they may have forgotten";
  EXPECT_FALSE(search.is_replaced(kOutset + 60s, {})) << "it never had company";
}

// storm 2026112701888: one member refused it, and took it again. Seven seconds later it was cut off, a twin
// took its place, and it ended at the first answer of each of the others, which turned the twin away then.
TEST(PeerSearch, is_not_replaced_by_the_first_answer_of_each_after_one_of_long_ago) {
  const std::vector<std::string> others = {"a:1", "b:1", "c:1"};
  PeerSearch search = joiner({});
  const auto hears = [&](Duration after, const std::string& from) {
    search.was_rejected(kOutset + after, from, rejected(Refusal::Code::taken, PeerId{7}));
    return search.is_replaced(kOutset + after, others);
  };
  EXPECT_FALSE(hears(0s, "d:1"));
  search.was_admitted("d:1");
  EXPECT_FALSE(hears(7s, "a:1"));
  EXPECT_FALSE(hears(7s, "b:1"));
  EXPECT_FALSE(hears(7s, "c:1"));
  EXPECT_FALSE(hears(13s, "a:1"));
  EXPECT_TRUE(hears(13s, "b:1"));
}

constexpr Refusal::Code kReasons[] = {Refusal::Code::version, Refusal::Code::parameters, Refusal::Code::run,
                                      Refusal::Code::credential};

TEST(PeerSearch, ends_when_all_addresses_refuse_it_twice_whatever_the_reason) {
  for (const Refusal::Code code : kReasons) {
    PeerSearch search = joiner({"a:1", "b:1"});
    const auto is_final = [&](const std::string& address) {
      return search.is_final(kOutset, address, rejected(code), {});
    };
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(is_final("a:1")) << "b may let it in";
    EXPECT_FALSE(is_final("c:1")) << "nobody asked for that one";
    EXPECT_FALSE(is_final("b:1")) << "one answer may be garbled";
    EXPECT_TRUE(is_final("b:1"));
  }
}

TEST(PeerSearch, ends_where_all_addresses_are_its_own) {
  EXPECT_TRUE(joiner({"a:1"}).is_final(kOutset, "a:1", rejected(Refusal::Code::self), {}));
  PeerSearch search = joiner({"a:1", "b:1"});
  EXPECT_FALSE(search.is_final(kOutset, "a:1", rejected(Refusal::Code::self), {}));
  EXPECT_FALSE(search.is_final(kOutset, "b:1", rejected(Refusal::Code::run), {}));
  EXPECT_TRUE(search.is_final(kOutset, "b:1", rejected(Refusal::Code::run), {}));
}

TEST(PeerSearch, ends_by_no_refusal_while_a_peer_is_linked_or_once_it_was) {
  for (const Refusal::Code code : kReasons) {
    PeerSearch search = joiner({"a:1"});
    const auto is_final = [&](const PeerSearch::Situation& situation) {
      return search.is_final(kOutset, "a:1", rejected(code), situation);
    };
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(is_final({.linked = true}));
    EXPECT_FALSE(is_final({.peer_state = wire::PeerState::member}));
    EXPECT_EQ(std::nullopt, search.gives_up(kOutset, {.linked = true}));
    EXPECT_FALSE(is_final({})) << "the link was proof of the contrary";
    EXPECT_TRUE(is_final({}));
  }
}

TEST(PeerSearch, that_gives_up_says_who_refused_it_rather_than_who_did_not_answer) {
  PeerSearch search = joiner({"a:1", "b:1"});
  EXPECT_EQ(std::nullopt, search.gives_up(kOutset, {}));
  EXPECT_FALSE(search.is_final(kOutset, "a:1", rejected(Refusal::Code::version), {}));
  search.was_rejected(kOutset, "a:1", rejected(Refusal::Code::version));
  search.nobody_answered("cannot connect to b:1");
  EXPECT_EQ("nobody who has the state of the run can be reached at a:1 for 30 s: a:1 answers: no",
            search.gives_up(kOutset + kGiveUpJoining, {}));
}

TEST(PeerSearch, of_an_orphan_without_anybody_to_join_ends_after_the_patience) {
  PeerSearch search = joiner({});
  EXPECT_FALSE(search.is_alone_for_good(kOutset, true));
  EXPECT_FALSE(search.is_alone_for_good(kOutset + 59s, true));
  EXPECT_TRUE(search.is_alone_for_good(kOutset + 60s, true));
  EXPECT_FALSE(search.is_alone_for_good(kOutset + 61s, false));
  EXPECT_FALSE(search.is_alone_for_good(kOutset + 62s, true)) << "somebody was there";
  EXPECT_FALSE(joiner({"a:1"}).is_alone_for_good(kOutset + 1h, true));
}

}  // namespace
}  // namespace tw::train
