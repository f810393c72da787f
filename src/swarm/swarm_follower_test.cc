// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "swarm/ballots/quorum.h"
#include "swarm/ballots/test_records.h"
#include "swarm/ballots/validation.h"
#include "swarm/shares/shares.h"
#include "swarm/swarm.h"
#include "wire/frame.h"

namespace tw::swarm {
namespace {

using wire::Commit;
using wire::PeerState;
using wire::Plan;
using wire::Record;
using wire::StallReport;
using namespace std::chrono_literals;

/// Peer 2 of three, linked to the leader 1 and to 3: tests send it messages and look at its reactions.
class Follower {
 public:
  Follower() : swarm(options(), now) {
    swarm.on_open(now, member(1));
    swarm.on_open(now, member(3));
    swarm.begin(now, head, kParameters);
    listen();
  }

  static Swarm::Options options() {
    Swarm::Options options{.self = member(2), .run = kRun};
    options.bootstrap = {"p1"};
    options.lease = {64, 4};
    options.averaged = {{.segments = 12}};
    options.rounds = 100;
    options.patience = 10s;
    return options;
  }

  Plan plan(Ballot ballot = 0, std::uint32_t version = 1) const {
    Plan plan{ballot, version};
    plan.shares = equal_shares(12, {PeerId{1}, PeerId{2}, PeerId{3}});
    plan.draft = {kRun, 7, digest_of(head), head.members};
    plan.draft.contributors = {{PeerId{1}, 0, 32, RangeSet(Range{0, 8})},
                               {PeerId{2}, 0, 32, RangeSet(Range{8, 8})}};
    plan.draft.first_sample = 384;
    plan.draft.samples = 64;
    plan.draft.majority_samples = 448;
    plan.draft.parameters = kParameters;
    plan.draft.had_company = true;
    plan.participants = {PeerId{1}, PeerId{2}, PeerId{3}};
    return plan;
  }

  static Record decided(const Plan& plan) {
    Record record = plan.draft;
    record.mean = kMean;
    return record;
  }

  void tell(std::uint64_t from, const wire::Message& message) {
    swarm.on_message(now, PeerId{from}, message);
    listen();
  }

  /// True if the plan is taken and voted for.
  bool votes_for(const Plan& plan) {
    const std::size_t before = count<wire::Vote>(1);
    tell(1, plan);
    if (!took<Reduce>()) return false;
    actions.clear();
    swarm.completed(now, kMean);
    listen();
    return count<wire::Vote>(1) > before;
  }

  template <class T>
  bool took() const {
    return std::any_of(actions.begin(), actions.end(),
                       [](const Action& d) { return std::holds_alternative<T>(d); });
  }

  template <class T>
  std::size_t count(std::uint64_t to) const {
    return static_cast<std::size_t>(std::count_if(sent.begin(), sent.end(), [&](const wire::Envelope& e) {
      return e.to == PeerId{to} && std::holds_alternative<T>(e.message);
    }));
  }

  void listen() {
    for (wire::Envelope& e : swarm.outputs().take_messages()) sent.push_back(std::move(e));
    for (Action& d : swarm.outputs().take_actions()) actions.push_back(std::move(d));
  }

  Instant now = Instant{} + 1h;
  Record head = head_of(members({1, 2, 3}));
  Swarm swarm;
  wire::Outbox sent{};
  std::vector<Action> actions{};
};

TEST(Follower, applies_the_record_that_it_voted_for) {
  Follower follower;
  const Plan plan = follower.plan();
  ASSERT_TRUE(follower.votes_for(plan));
  follower.tell(3, Commit{Follower::decided(plan)});
  EXPECT_TRUE(follower.took<Committed>()) << "whoever tells";
  EXPECT_EQ(Follower::decided(plan), follower.swarm.head());
}

TEST(Follower, takes_no_record_that_differs_in_anything_from_the_plan_it_voted_for) {
  const std::vector<std::pair<const char*, std::function<void(Record&)>>> changes = {
      {"members", [](Record& r) { r.members.pop_back(); }},
      {"an address", [](Record& r) { r.members[2].address = "elsewhere"; }},
      {"contributors", [](Record& r) { r.contributors.pop_back(); }},
      {"samples", [](Record& r) { r.samples = 640; }},
      {"first sample", [](Record& r) { r.first_sample = 385; }},
      {"mean", [](Record& r) { r.mean = kParameters; }},
      {"parameters", [](Record& r) { r.parameters = kMean; }},
      {"minority", [](Record& r) { r.minority = true; }},
      {"last", [](Record& r) { r.last = true; }},
      {"parent", [](Record& r) { r.parent = kMean; }},
      {"restarts", [](Record& r) { r.restarts = 1; }},
      {"round", [](Record& r) { r.round = 8; }},
  };
  for (const auto& [what, change] : changes) {
    Follower follower;
    ASSERT_TRUE(follower.votes_for(follower.plan()));
    Record other = Follower::decided(follower.plan());
    change(other);
    follower.tell(1, Commit{other});
    EXPECT_FALSE(follower.took<Committed>()) << what;
    EXPECT_TRUE(follower.took<CatchUp>()) << what;
    EXPECT_EQ(PeerState::syncing, follower.swarm.peer_state()) << what;
  }
}

TEST(Follower, takes_the_state_and_no_mean_where_a_round_began_with_other_parameters) {
  for (const Digest& began : {kParameters, kMean}) {
    Follower follower;
    Record record = Follower::decided(follower.plan());  // without this peer: no plan came
    record.parameters = began;
    follower.tell(1, Commit{record});
    ASSERT_EQ(follower.actions.size(), 1U);
    EXPECT_EQ(std::get<CatchUp>(follower.actions.front()).differs, began != kParameters);
  }
}

TEST(Follower, takes_no_record_without_the_mean_of_its_plan) {
  Follower follower;
  follower.tell(1, follower.plan());
  follower.tell(1, Commit{Follower::decided(follower.plan())});
  EXPECT_FALSE(follower.took<Committed>());
  EXPECT_TRUE(follower.took<CatchUp>());
}

TEST(Follower, follows_no_process_that_took_the_id_of_the_leader) {
  Follower follower;
  follower.swarm.on_close(follower.now, PeerId{1}, "gone");
  follower.swarm.on_open(follower.now, {PeerId{1}, "p1", 77});
  follower.tell(1, follower.plan());
  follower.tell(1, wire::Lease{7, 0, 0, RangeSet(Range{0, 4})});
  EXPECT_FALSE(follower.took<Reduce>());
  EXPECT_FALSE(follower.swarm.begin_work(follower.now).has_value());
  follower.tell(1, wire::Prepare{7, 3});
  EXPECT_EQ(0U, follower.count<wire::Promise>(1));
}

TEST(Follower, turns_away_who_is_linked_under_the_id_of_a_member_when_the_member_calls) {
  Follower follower;
  const wire::Member stranger{PeerId{3}, "p3", 77};
  follower.swarm.on_close(follower.now, PeerId{3}, "gone");
  follower.swarm.on_open(follower.now, stranger);
  follower.swarm.on_taken(follower.now, {PeerId{3}, "p3", 88});
  follower.listen();
  EXPECT_FALSE(follower.took<Hangup>()) << "neither of the two is the member";
  follower.swarm.on_taken(follower.now, member(3));
  follower.listen();
  EXPECT_TRUE(follower.took<Hangup>());
  EXPECT_FALSE(follower.swarm.view().may_link(stranger));
  EXPECT_TRUE(follower.swarm.view().may_link(member(3)));
  follower.swarm.step(follower.now + 7s);
  EXPECT_TRUE(follower.swarm.view().may_link(stranger)) << "the member has not come: its place is free";
}

TEST(Follower, turns_away_who_is_linked_under_the_id_of_a_member_when_a_round_is_decided) {
  Follower follower;
  ASSERT_TRUE(follower.votes_for(follower.plan()));
  follower.swarm.on_close(follower.now, PeerId{3}, "gone");
  follower.swarm.on_open(follower.now, {PeerId{3}, "p3", 77});
  follower.tell(1, Commit{Follower::decided(follower.plan())});
  EXPECT_TRUE(follower.took<Hangup>());
}

TEST(Follower, dials_a_member_where_it_is_though_others_know_another_process_of_its_id) {
  Follower follower;
  follower.swarm.on_close(follower.now, PeerId{3}, "gone");
  follower.tell(1, wire::Peers{{{PeerId{3}, "elsewhere", 77}}});
  follower.swarm.step(follower.now + 1s);
  follower.listen();
  const auto dialed = [&](const std::string& address) {
    return std::any_of(follower.actions.begin(), follower.actions.end(), [&](const Action& d) {
      const Dial* dial = std::get_if<Dial>(&d);
      return dial != nullptr && dial->address == address;
    });
  };
  EXPECT_TRUE(dialed("p3"));
  EXPECT_FALSE(dialed("elsewhere"));
}

TEST(Follower, is_no_member_when_the_record_names_another_process_of_its_id) {
  Follower follower;
  Plan plan = follower.plan();
  plan.draft.members[1].incarnation = 77;
  ASSERT_TRUE(follower.votes_for(plan));
  follower.tell(1, Commit{Follower::decided(plan)});
  EXPECT_EQ(PeerState::ready, follower.swarm.peer_state());
}

TEST(Follower, keeps_its_promises_when_it_takes_the_state_of_the_same_record_again) {
  Follower follower;
  follower.tell(3, wire::Prepare{7, 2});
  Record longer = follower.head;
  longer.round = 9;
  longer.samples = 1000;
  follower.tell(1, Commit{longer});
  ASSERT_TRUE(follower.took<CatchUp>());
  follower.swarm.begin(follower.now, follower.head, kParameters);
  follower.listen();
  follower.tell(1, follower.plan(0));
  EXPECT_FALSE(follower.took<Reduce>()) << "ballot 2 was promised";
  follower.tell(3, follower.plan(2));
  EXPECT_TRUE(follower.took<Reduce>());
}

TEST(Follower, averages_its_plan_once_more_after_it_took_the_state_of_the_same_record_again) {
  Follower follower;
  ASSERT_TRUE(follower.votes_for(follower.plan()));
  Record longer = follower.head;
  longer.samples = 1000;
  follower.tell(1, Commit{longer});
  follower.swarm.begin(follower.now, follower.head, kParameters);
  follower.listen();
  follower.actions.clear();
  follower.tell(1, Commit{Follower::decided(follower.plan())});
  EXPECT_FALSE(follower.took<Committed>()) << "its mean is gone";
  follower.swarm.begin(follower.now, follower.head, kParameters);
  EXPECT_TRUE(follower.votes_for(follower.plan()));
}

wire::Progress last_word(const Follower& follower) {
  const auto told = std::find_if(follower.sent.rbegin(), follower.sent.rend(), [](const wire::Envelope& e) {
    return std::holds_alternative<wire::Progress>(e.message);
  });
  return std::get<wire::Progress>(told->message);
}

TEST(Follower, that_does_not_know_yet_how_much_it_does_at_once_begins_all_that_it_has) {
  Follower follower;
  follower.tell(1, wire::Lease{7, 0, 0, RangeSet(Range{8, 8})});
  const std::optional<WorkItem> item = follower.swarm.begin_work(follower.now, 0);
  ASSERT_TRUE(item.has_value());
  EXPECT_EQ(RangeSet(Range{8, 8}), item->microbatches);
  follower.swarm.leave(follower.now);
  follower.listen();
  EXPECT_EQ(2U, last_word(follower).grain) << "nothing odd is left of a round of 16";
}

TEST(Follower, tells_at_once_that_it_gives_back_its_leases_when_it_leaves) {
  Follower follower;
  follower.tell(1, wire::Lease{7, 0, 0, RangeSet(Range{8, 8})});
  const std::optional<WorkItem> item = follower.swarm.begin_work(follower.now, 4);
  ASSERT_TRUE(item.has_value());
  follower.swarm.leave(follower.now);
  follower.listen();
  EXPECT_TRUE(last_word(follower).leaving);
  EXPECT_TRUE(last_word(follower).gave_back);
  EXPECT_EQ((std::vector<wire::SlotProgress>{{0, {}, RangeSet(Range{8, 4})}}), last_word(follower).slots);
}

TEST(Follower, that_gave_its_seat_reduces_but_does_not_vote) {
  Follower follower;
  ASSERT_TRUE(Follower().votes_for(follower.plan())) << "one with a seat";
  follower.swarm.leave(follower.now, follower.now + 10s);
  follower.tell(1, wire::HandOver{.round = 7, .to = PeerId{3}});
  ASSERT_TRUE(follower.took<HandOver>());
  follower.swarm.handed_over(follower.now);
  follower.listen();
  ASSERT_EQ(follower.count<wire::Entrust>(3), 1U);
  EXPECT_THAT(std::get<wire::Entrust>(follower.sent.back().message).seats, testing::ElementsAre(PeerId{2}));
  follower.tell(1, follower.plan());
  ASSERT_TRUE(follower.took<Reduce>());
  follower.swarm.completed(follower.now, kMean);
  follower.listen();
  EXPECT_EQ(follower.count<wire::Vote>(1), 0U);
}

// long_rounds 403: the log of a peer that left lacked its last round.
TEST(Follower, commits_the_record_that_leaves_it_out_before_it_ends) {
  Follower follower;
  Plan plan = follower.plan();
  ASSERT_TRUE(follower.votes_for(plan));
  follower.swarm.leave(follower.now);
  std::erase_if(plan.draft.members, [](const wire::Member& m) { return m.peer == PeerId{2}; });
  plan.version = 2;
  ASSERT_TRUE(follower.votes_for(plan));
  follower.tell(1, Commit{Follower::decided(plan)});
  ASSERT_EQ(2U, follower.actions.size());
  EXPECT_TRUE(std::holds_alternative<Committed>(follower.actions[0]));
  EXPECT_TRUE(std::holds_alternative<Ended>(follower.actions[1]));
}

TEST(Follower, stops_when_a_member_says_that_nobody_can_compute_its_round) {
  Follower follower;
  follower.swarm.on_open(follower.now, member(9));
  follower.tell(9, wire::Stop{7, "from no member"});
  follower.tell(1, wire::Stop{6, "of a round that is over"});
  EXPECT_FALSE(follower.took<Ended>());
  follower.tell(1, wire::Stop{7, "a.tar: 404"});
  ASSERT_TRUE(follower.took<Ended>());
  const Ended end = std::get<Ended>(follower.actions.back());
  EXPECT_EQ("a.tar: 404", end.why);
  EXPECT_TRUE(end.failed);
}

TEST(Follower, says_what_it_cannot_compute_before_it_gives_it_back_and_to_each_new_leader) {
  Follower follower;
  follower.tell(1, wire::Lease{7, 0, 0, RangeSet(Range{8, 8})});
  const std::optional<WorkItem> item = follower.swarm.begin_work(follower.now, 4);
  ASSERT_TRUE(item.has_value());
  follower.sent.clear();
  follower.swarm.give_back(follower.now, *item, FailedSample{384 + 4 * 9, "a.tar: 404"});
  follower.listen();
  ASSERT_LE(2U, follower.sent.size());
  const wire::Failures failures{7, RangeSet(Range{9, 1}), "a.tar: 404"};
  EXPECT_EQ(failures, std::get<wire::Failures>(follower.sent[0].message))
      << "the microbatch of that sample alone";
  ASSERT_TRUE(std::holds_alternative<wire::Progress>(follower.sent[1].message));
  EXPECT_TRUE(std::get<wire::Progress>(follower.sent[1].message).gave_back);
  follower.sent.clear();
  follower.tell(3, wire::Prepare{7, 2});
  ASSERT_EQ(1U, follower.count<wire::Failures>(3));
  EXPECT_EQ(failures, std::get<wire::Failures>(follower.sent[0].message)) << "before the promise";
}

TEST(Follower, does_what_a_plan_counts_on_though_it_dropped_it_on_leaving) {
  Follower follower;
  follower.tell(1, wire::Lease{7, 0, 0, RangeSet(Range{8, 8})});
  follower.swarm.leave(follower.now);
  EXPECT_FALSE(follower.swarm.begin_work(follower.now).has_value());
  follower.tell(1, follower.plan());
  EXPECT_EQ(0U, follower.count<StallReport>(1));
  for (std::uint64_t i = 8; i < 16; ++i) {
    const std::optional<WorkItem> item = follower.swarm.begin_work(follower.now);
    ASSERT_TRUE(item.has_value());
    EXPECT_EQ(i, item->microbatches.ranges().front().first);
    EXPECT_EQ(4 * (15 - i), item->ahead.count()) << "samples";
    follower.swarm.finish_work(follower.now, *item, {1, 1});
  }
  EXPECT_TRUE(follower.swarm.view().work.has_done_just(0, RangeSet(Range{8, 8})));
}

TEST(Follower, says_that_what_it_gave_back_does_not_come_though_a_plan_counts_on_it) {
  Follower follower;
  follower.tell(1, wire::Lease{7, 0, 0, RangeSet(Range{8, 8})});
  const std::optional<WorkItem> item = follower.swarm.begin_work(follower.now, 8);
  ASSERT_TRUE(item.has_value());
  EXPECT_EQ(32U, item->samples.count());
  follower.tell(1, follower.plan());
  follower.swarm.give_back(follower.now, *item);
  follower.listen();
  EXPECT_EQ(1U, follower.count<StallReport>(1));
  EXPECT_FALSE(follower.swarm.begin_work(follower.now, 8).has_value());
}

// storm 7627: a program paused with one microbatch under way and another one leased. It computed the former,
// and kept the latter during the whole pause.
TEST(Follower, gives_back_what_has_not_begun_when_its_compute_thread_goes) {
  Follower follower;
  follower.tell(1, wire::Lease{7, 0, 0, RangeSet(Range{8, 8})});
  const std::optional<WorkItem> item = follower.swarm.begin_work(follower.now, 4);
  ASSERT_TRUE(item.has_value());
  follower.swarm.set_presence(follower.now, wire::Presence::away);
  follower.listen();
  EXPECT_TRUE(last_word(follower).gave_back);
  EXPECT_EQ((std::vector<wire::SlotProgress>{{0, {}, RangeSet(Range{8, 4})}}), last_word(follower).slots);
  follower.swarm.finish_work(follower.now, *item, {3, 1});
  follower.listen();
  EXPECT_TRUE(last_word(follower).gave_back) << "what was under way, and was not done";
  EXPECT_EQ((std::vector<wire::SlotProgress>{{0, RangeSet(Range{8, 3}), {}}}), last_word(follower).slots);
  EXPECT_EQ(0U, follower.count<StallReport>(1));
}

TEST(Follower, says_that_what_has_not_begun_does_not_come_when_its_compute_thread_goes) {
  Follower follower;
  follower.tell(1, wire::Lease{7, 0, 0, RangeSet(Range{8, 8})});
  ASSERT_TRUE(follower.swarm.begin_work(follower.now, 4).has_value());
  follower.tell(1, follower.plan());
  follower.swarm.set_presence(follower.now, wire::Presence::away);
  follower.listen();
  EXPECT_EQ(1U, follower.count<StallReport>(1));
}

TEST(Follower, gives_back_a_lease_that_comes_while_its_program_is_busy) {
  Follower follower;
  follower.swarm.set_presence(follower.now, wire::Presence::away);
  follower.tell(1, wire::Lease{7, 0, 0, RangeSet(Range{8, 8})});
  EXPECT_TRUE(last_word(follower).gave_back);
  EXPECT_TRUE(last_word(follower).slots.empty());
}

TEST(Follower, says_that_what_a_plan_counts_on_does_not_come_while_its_program_is_busy) {
  Follower follower;
  follower.swarm.set_presence(follower.now, wire::Presence::away);
  follower.tell(1, follower.plan());
  EXPECT_EQ(1U, follower.count<StallReport>(1)) << "its lease was lost";
}

// long_rounds 998996828197: a leader's old leases came again, and seven peers did what others had by then.
// Rounds of 20 ms in mode delayed took 1.2 s: the recall came while the last update waited for the compute
// thread, and only the leader's second one was answered.
TEST(Follower, answers_a_recall_that_came_before_its_update_once_that_is_done) {
  Follower follower;
  const Plan plan = follower.plan();
  ASSERT_TRUE(follower.votes_for(plan));
  follower.tell(1, Commit{Follower::decided(plan)});
  const auto answers = [&] {
    return std::ranges::count_if(follower.sent, [](const wire::Envelope& e) {
      const auto* told = std::get_if<wire::Progress>(&e.message);
      return e.to == PeerId{1} && told != nullptr && told->round == 8 && told->gave_back;
    });
  };
  follower.tell(1, wire::Recall{8, 0, 1});
  EXPECT_EQ(0, answers()) << "it does not know its parameters";
  follower.swarm.applied(follower.now, 7, kMean);
  follower.listen();
  EXPECT_EQ(1, answers());
  follower.swarm.set_presence(follower.now, wire::Presence::away);
  follower.swarm.set_presence(follower.now, wire::Presence::here);
  follower.listen();
  EXPECT_EQ(1, answers()) << "once";
}

TEST(Follower, does_not_take_an_old_lease_for_a_new_one_after_a_recall) {
  Follower follower;
  const wire::Lease lease{7, 0, 0, RangeSet(Range{8, 8}), 1};
  follower.tell(1, lease);
  follower.tell(1, wire::Recall{7, 0, 2});
  EXPECT_TRUE(last_word(follower).gave_back);
  follower.tell(1, lease);
  EXPECT_FALSE(follower.swarm.begin_work(follower.now).has_value());
  follower.tell(1, wire::Lease{7, 0, 0, RangeSet(Range{8, 4}), 3});
  EXPECT_TRUE(follower.swarm.begin_work(follower.now).has_value());
}

TEST(Follower, says_that_its_sum_is_not_the_one_that_a_plan_counts_on) {
  Follower more, given;
  more.tell(1, wire::Lease{7, 0, 0, RangeSet(Range{7, 8})});
  more.tell(1, more.plan());
  EXPECT_EQ(1U, more.count<StallReport>(1));
  const StallReport expected{{7}, PeerId{2}, wire::StallCause::owes_contribution};
  const auto told = std::find_if(more.sent.begin(), more.sent.end(), [](const wire::Envelope& e) {
    return std::holds_alternative<StallReport>(e.message);
  });
  EXPECT_EQ(expected, std::get<StallReport>(told->message));
  given.tell(1, wire::Lease{7, 0, 0, RangeSet(Range{8, 8})});
  while (const std::optional<WorkItem> item = given.swarm.begin_work(given.now))
    given.swarm.finish_work(given.now, *item, {1, 1});
  given.swarm.work().close(0);
  given.tell(1, given.plan());
  EXPECT_EQ(0U, given.count<StallReport>(1)) << "others have it";
}

/// Six rounds after head_of(), decided by a majority of itself alone.
Record made_alone() {
  Record record = head_of(members({1}));
  record.round = 67;
  record.first_sample += 61 * 64;
  record.majority_samples = 320;
  record.awaited = {PeerId{1}, PeerId{2}, PeerId{3}, PeerId{4}};
  record.had_company = true;
  return record;
}

wire::Heartbeat beat_of(const Record& record) {
  wire::Heartbeat beat{
      .peer_state = PeerState::member, .head = record.round, .head_record = digest_of(record)};
  beat.majority_samples = record.majority_samples;
  beat.samples = record.samples_total();
  beat.had_company = record.had_company;
  return beat;
}

TEST(Follower, gives_no_way_to_a_longer_history_that_fewer_samples_of_a_majority_stand_behind) {
  Follower of_the_majority, alone;
  const Record other = made_alone();
  of_the_majority.tell(3, Commit{other});
  EXPECT_FALSE(of_the_majority.took<CatchUp>());
  EXPECT_EQ(PeerState::member, of_the_majority.swarm.peer_state());
  of_the_majority.tell(3, beat_of(other));
  EXPECT_EQ(1U, of_the_majority.count<Commit>(3)) << "so that it learns that it has to give way";
  of_the_majority.tell(1, beat_of(of_the_majority.head));
  EXPECT_EQ(0U, of_the_majority.count<Commit>(1));

  alone.swarm.begin(alone.now, other, kParameters);
  alone.tell(1, beat_of(alone.head));
  EXPECT_EQ(0U, alone.count<Commit>(1)) << "it has nothing to tell";
  alone.tell(1, Commit{alone.head});
  EXPECT_TRUE(alone.took<CatchUp>());
  EXPECT_EQ(alone.head.round, alone.swarm.view().best_told().round);
}

TEST(Follower,
     gives_way_to_more_samples_in_all_and_then_to_the_lower_digest_where_majorities_decided_as_many) {
  Follower shorter, longer;
  Record more = shorter.head;
  more.first_sample += 64;
  shorter.tell(1, Commit{more});
  EXPECT_TRUE(shorter.took<CatchUp>());
  longer.swarm.begin(longer.now, more, kParameters);
  longer.tell(1, Commit{longer.head});
  EXPECT_FALSE(longer.took<CatchUp>());

  Follower first, second;
  Record other = first.head;
  other.mean = kMean;
  second.swarm.begin(second.now, other, kParameters);
  first.tell(1, Commit{other});
  second.tell(1, Commit{first.head});
  EXPECT_NE(first.took<CatchUp>(), second.took<CatchUp>()) << "of two alike just one";
  EXPECT_EQ(first.took<CatchUp>(), digest_of(other) < digest_of(first.head));
}

TEST(Follower, has_all_of_the_round_sent_again_to_whom_took_the_state_meanwhile) {
  Follower f;
  f.tell(3, wire::Heartbeat{.peer_state = PeerState::member, .head = 6});
  EXPECT_FALSE(f.took<SendAgain>());
  f.tell(3, wire::Heartbeat{.peer_state = PeerState::syncing, .head = 6});
  f.tell(3, wire::Heartbeat{.peer_state = PeerState::syncing, .head = 6});
  EXPECT_FALSE(f.took<SendAgain>());
  f.tell(3, wire::Heartbeat{.peer_state = PeerState::member, .head = 6});
  ASSERT_TRUE(f.took<SendAgain>());
  EXPECT_EQ(PeerId{3}, std::get<SendAgain>(f.actions.back()).peer);
}

TEST(Follower, believes_a_commit_that_no_heartbeat_confirms_for_two_seconds) {
  Follower f;
  Record forged = f.head;
  forged.round = 1'000'000;
  forged.first_sample = 64'000'000;
  f.tell(3, Commit{forged});
  EXPECT_EQ(1'000'000U, f.swarm.view().best_told().round);
  f.now += 2s;
  f.tell(1, beat_of(f.head));
  EXPECT_EQ(6U, f.swarm.view().best_told().round);
}

TEST(Follower, takes_no_plan_that_no_correct_leader_makes) {
  const std::vector<std::pair<const char*, std::function<void(Plan&)>>> changes = {
      {"a sample too many", [](Plan& p) { p.draft.contributors[0].samples = 33; }},
      {"a thousand times the samples", [](Plan& p) { p.draft.contributors[0].samples *= 1000; }},
      {"microbatches that the round does not have",
       [](Plan& p) {
         p.draft.contributors[0].microbatches = RangeSet(Range{100, 8});
       }},
      {"microbatches that count twice",
       [](Plan& p) { p.draft.contributors.push_back(p.draft.contributors[0]); }},
      {"microbatches that nobody did", [](Plan& p) { p.draft.contributors.pop_back(); }},
      {"a slot beyond the limit", [](Plan& p) { p.draft.contributors[0].slot = wire::kMostSlots; }},
      {"another batch size", [](Plan& p) { p.draft.samples = 128; }},
      {"samples of another round", [](Plan& p) { p.draft.first_sample = 0; }},
      {"nobody to go on", [](Plan& p) { p.draft.members.clear(); }},
      {"another run", [](Plan& p) { p.draft.run = kMean; }},
      {"more of a majority than the round has", [](Plan& p) { ++p.draft.majority_samples; }},
      {"peers that nobody waits for", [](Plan& p) { p.draft.awaited = {PeerId{9}}; }},
  };
  for (const auto& [what, change] : changes) {
    Follower follower;
    Plan plan = follower.plan();
    change(plan);
    follower.tell(1, plan);
    EXPECT_FALSE(follower.took<Reduce>()) << what;
    EXPECT_TRUE(follower.votes_for(follower.plan())) << "the right one is taken all the same, after " << what;
  }
}

TEST(Follower, sends_a_peer_whose_state_alternates_the_round_no_more_than_a_few_times) {
  Follower follower;
  const auto again = [&] {
    return std::ranges::count_if(follower.actions,
                                 [](const Action& d) { return std::holds_alternative<SendAgain>(d); });
  };
  const auto says = [&](PeerState peer_state) {
    wire::Heartbeat heartbeat;
    heartbeat.peer_state = peer_state;
    heartbeat.head = 6;
    heartbeat.head_record = digest_of(follower.head);
    follower.tell(3, heartbeat);
  };
  for (int i = 0; i < 100; ++i) {
    says(PeerState::syncing);
    says(PeerState::member);
    EXPECT_GE(again(), 1) << "what it threw away is due at once";
    follower.now += 100ms;
    follower.tell(1, wire::Heartbeat{});
    follower.swarm.step(follower.now);
    follower.listen();
  }
  EXPECT_EQ(again(), 4) << "after 0, 1, 3 and 7 s of 10";
}

TEST(Follower, keeps_no_more_of_100000_ids_that_came_and_went_than_its_bounds) {
  Follower follower;
  for (std::uint64_t id = 10; id < 100'010; ++id) {
    follower.now += 1ms;
    follower.swarm.on_open(follower.now, member(id));
    wire::Heartbeat heartbeat;
    heartbeat.peer_state = PeerState::ready;
    follower.tell(id, heartbeat);
    wire::Progress progress;
    progress.round = 7;
    progress.parameters = kParameters;
    follower.tell(id, progress);
    follower.swarm.on_close(follower.now, PeerId{id}, "gone");
    follower.sent.clear();
    follower.actions.clear();
    follower.swarm.outputs().take_events();
    const std::uint64_t bound = (Roster::kMostStrangers + 10) * (Roster::kEntryBytes + Swarm::kNotesBytes);
    if (id % 1000 == 0) {
      ASSERT_LE(follower.swarm.held_bytes(), bound) << id;
    }
  }
  EXPECT_TRUE(follower.swarm.view().membership.roster().is_open(PeerId{3}));
}

/// Peer 2 waits for 1 to begin the run; process `incarnation` is linked under id 1.
struct Waiting {
  Waiting(std::uint64_t incarnation, bool founds) : swarm(Follower::options(), now) {
    swarm.fresh(now, kParameters);
    swarm.on_open(now, {PeerId{1}, "p1", incarnation}, {.founds = founds});
    swarm.outputs().take_actions();
  }

  bool turns_away_who_is_linked_for(const wire::Member& caller, bool founds) {
    swarm.on_taken(now, caller, founds);
    const std::vector<Action> actions = swarm.outputs().take_actions();
    return std::ranges::any_of(actions, [](const Action& d) {
      const auto* hangup = std::get_if<Hangup>(&d);
      return hangup != nullptr && hangup->peer == PeerId{1};
    });
  }

  Instant now = Instant{} + 1h;
  Swarm swarm;
};

TEST(Follower, gives_the_founder_its_id_back_before_the_run_has_begun) {
  const wire::Member founder{PeerId{1}, "p1", 7}, twin{PeerId{1}, "p9", 8};
  Waiting squatted(twin.incarnation, false);
  EXPECT_FALSE(squatted.turns_away_who_is_linked_for(founder, false)) << "it does not say what it is";
  EXPECT_TRUE(squatted.turns_away_who_is_linked_for(founder, true));
  EXPECT_FALSE(squatted.swarm.view().may_link(twin)) << "until the founder is linked";
  EXPECT_TRUE(squatted.swarm.view().may_link(founder));
  Waiting founded(founder.incarnation, true);
  EXPECT_FALSE(founded.turns_away_who_is_linked_for(twin, true)) << "of two founders the one that is here";
  Follower member;
  member.swarm.on_taken(member.now, founder, true);
  member.listen();
  EXPECT_FALSE(member.took<Hangup>()) << "the history tells who has an id";
}

TEST(Follower, tells_what_led_to_a_record_before_what_came_of_it) {
  Follower leader;
  leader.swarm.on_close(leader.now, PeerId{1}, "gone");  // 2 leads round 7
  ASSERT_TRUE(leader.swarm.leading().leads());
  EXPECT_TRUE(leader.swarm.outputs().take_events_until(6).empty());
  EXPECT_FALSE(leader.swarm.outputs().take_events_until(7).empty());
  EXPECT_TRUE(leader.swarm.outputs().take_events().empty()) << "each is told once";
}

TEST(Follower, sends_its_segments_again_to_a_peer_that_still_lacks_them) {
  Follower follower;
  ASSERT_TRUE(follower.votes_for(follower.plan()));
  const Round round = follower.head.round + 1;
  follower.tell(3, StallReport{{round}, PeerId{1}, wire::StallCause::send_again});
  follower.tell(3, StallReport{{round}, PeerId{2}, wire::StallCause::owes_mean});
  follower.tell(3, StallReport{{round + 1}, PeerId{2}, wire::StallCause::send_again});
  EXPECT_FALSE(follower.took<SendAgain>());
  follower.tell(3, StallReport{{round}, PeerId{2}, wire::StallCause::send_again});
  EXPECT_TRUE(follower.took<SendAgain>());
}

}  // namespace
}  // namespace tw::swarm
