// SPDX-License-Identifier: Apache-2.0
#include "swarm/lead.h"

#include "base/prng.h"
#include "swarm/ballots/quorum.h"
#include "swarm/ballots/test_records.h"
#include "swarm/ballots/validation.h"
#include "swarm/leases/work.h"
#include "swarm/test_council.h"
#include "wire/frame.h"

namespace tw::swarm {
namespace {

using wire::Plan;
using wire::StallCause;
using namespace std::chrono_literals;

wire::Accepted accepted_plan(const wire::Record& head, std::uint32_t version,
                             const std::vector<wire::Contribution>& contributors, const Digest& mean) {
  Plan plan;
  plan.ballot = 0;
  plan.version = version;
  plan.draft.run = head.run;
  plan.draft.round = 7;
  plan.draft.parent = digest_of(head);
  plan.draft.members = head.members;
  plan.draft.contributors = contributors;
  plan.draft.first_sample = 384;
  plan.draft.samples = 64;
  plan.draft.majority_samples = 448;
  plan.draft.had_company = true;
  plan.draft.parameters = kParameters;
  plan.shares = {{PeerId{1}, 0, 4}, {PeerId{2}, 4, 4}, {PeerId{3}, 8, 4}};
  plan.participants = {PeerId{1}, PeerId{2}, PeerId{3}};
  return {plan, mean};
}

std::vector<wire::Contribution> all_by(std::uint64_t id) {
  return {{PeerId{id}, 0, 64, RangeSet(Range{0, 16})}};
}

std::vector<wire::Contribution> without(std::vector<wire::Contribution> all, std::uint64_t id) {
  std::erase_if(all, [&](const wire::Contribution& c) { return c.peer == PeerId{id}; });
  return all;
}

// ---- an undisturbed round

TEST(Lead, bids_again_when_all_who_count_leave_and_somebody_else_could_stay) {
  Council council({.members = {1, 2}});
  council.everybody_tells();
  council.lose(2);
  council.leaving.insert(1);
  council.everybody_tells();
  council.after(1s);
  EXPECT_FALSE(council.lead.resigned()) << "nobody else is here";
  EXPECT_EQ("waiting for a peer that goes on with the run: peer 1 leaves", text_of(council.lead.waiting()));
  council.link(2);
  EXPECT_EQ((std::vector<PeerId>{PeerId{2}}), council.lead.waiting().peers);
  council.after(300ms);
  EXPECT_TRUE(council.lead.resigned());
}

TEST(Lead, never_proposes_a_record_without_members) {
  Council council({.members = {1, 2}});
  council.everybody_tells();
  council.leaving = {1, 2};
  for (int i = 0; i < 100; ++i) {
    for (const std::uint64_t id : {1, 2}) council.works_once(id);
    council.tells(1, true);
    council.tells(2, true);
    council.after(100ms);
  }
  EXPECT_EQ(0U, council.last_plan.version);
}

TEST(Lead, counts_no_process_that_took_the_id_of_a_member_and_makes_it_a_member_of_its_own) {
  Council council;
  council.live.at(PeerId{2}) = 77;
  council.candidates.insert(2);
  council.lead.set_live(council.now, council.live);
  const wire::Member other{PeerId{2}, "p2", 77};
  council.everybody_tells();
  const Plan plan = council.work_until_called();
  EXPECT_FALSE(contributes(plan.draft, 2)) << "it was given no lease";
  EXPECT_EQ((std::vector<wire::Member>{member(1), member(3), other}), plan.draft.members);
  council.vote(1);
  council.vote(2);
  EXPECT_FALSE(council.lead.committed()) << "the vote of 3 is missing";
  council.lose(3);
  council.after(2s);
  EXPECT_FALSE(council.lead.committed())
      << "one of three members is no majority, whoever has the id of another";
}

TEST(Lead, commits_exactly_the_target_batch_size_in_whole_microbatches) {
  Council council({.lease = {50, 4}});
  const Plan plan = council.work_until_called();
  EXPECT_TRUE(covers_the_batch(plan.draft, 13));
  EXPECT_EQ(50U, plan.draft.samples);
  for (const std::uint64_t id : {1, 2, 3}) {
    EXPECT_TRUE(contributes(plan.draft, id));
    EXPECT_EQ(plan, council.plans.at(id));
    EXPECT_FALSE(council.lead.committed().has_value()) << "without the vote of " << id;
    council.vote(id);
  }
  wire::Record expected = plan.draft;
  expected.mean = kMean;
  EXPECT_EQ(expected, council.lead.committed());
  EXPECT_EQ(7U, expected.round);
  EXPECT_EQ(370U, expected.first_sample);
  EXPECT_EQ(digest_of(council.head), expected.parent);
  EXPECT_EQ(council.head.members, expected.members);
  EXPECT_FALSE(expected.minority || expected.last);
}

TEST(Lead, marks_the_last_round) {
  Council by_count({.rounds = 7});
  EXPECT_TRUE(by_count.work_until_called().draft.last);
  Council by_wish;
  by_wish.lead.end_run();
  EXPECT_TRUE(by_wish.work_until_called().draft.last);
}

TEST(Lead, gives_no_work_before_the_company_is_there) {
  Council council({.members = {1}, .wait_for = 2});
  council.everybody_tells();
  EXPECT_TRUE(council.leased.empty() && council.lead.waiting().peers.empty());
  EXPECT_EQ("waiting for 1 more peer to begin: 1 of 2 are here", text_of(council.lead.waiting()));
  council.candidates.insert(2);
  council.link(2);
  council.tells(2);
  EXPECT_FALSE(council.leased.empty());
}

TEST(Lead, lets_a_candidate_receive_the_mean_and_makes_it_a_member) {
  Council council({.members = {1, 2}});
  council.candidates.insert(3);
  council.link(3);
  const Plan plan = council.work_until_called();
  EXPECT_FALSE(contributes(plan.draft, 3));
  EXPECT_EQ(plan, council.plans.at(3));
  EXPECT_EQ(members({1, 2, 3}), plan.draft.members);
  for (const wire::Share& share : plan.shares) EXPECT_NE(PeerId{3}, share.owner);
  council.vote(1);
  council.vote(2);
  EXPECT_FALSE(council.lead.committed().has_value()) << "the candidate has no mean yet";
  council.vote(3);
  EXPECT_TRUE(council.lead.committed().has_value());
}

TEST(Lead, takes_in_a_joiner_that_comes_to_the_head_after_the_call) {
  Council council;
  const Plan first = council.work_until_called();
  council.vote(1);
  council.candidates.insert(4);
  council.link(4);
  council.tells(4);
  EXPECT_EQ(council.last_plan.version, first.version + 1);
  EXPECT_TRUE(is_member(council.last_plan.draft.members, PeerId{4}));
  EXPECT_EQ(council.last_plan.draft.contributors, first.draft.contributors);
  EXPECT_EQ(council.last_plan.participants.back(), PeerId{4});
  council.tells(4);
  EXPECT_EQ(council.last_plan.version, first.version + 1) << "once is enough";
}

TEST(Lead, gives_work_to_a_joiner_that_comes_while_the_round_is_under_way) {
  Council council({.members = {1, 2}});
  council.everybody_tells();
  council.link(3);
  const Plan plan = council.work_until_called();
  EXPECT_TRUE(contributes(plan.draft, 3));
  EXPECT_TRUE(covers_the_batch(plan.draft, 16));
  for (const wire::Share& share : plan.shares)
    EXPECT_NE(PeerId{3}, share.owner) << "not everybody has a link to it";
  council.vote(3);
  council.vote(1);
  EXPECT_FALSE(council.lead.committed().has_value()) << "it is no member of the round before";
}

TEST(Lead, counts_on_what_a_peer_gave_back_after_the_call) {
  Council council;
  const Plan first = council.work_until_called();
  std::uint64_t giver = 0;
  for (const auto& [id, work] : council.works) {
    for (const wire::SlotProgress& slot : work.progress()) giver = slot.held.empty() ? giver : id;
  }
  ASSERT_NE(0U, giver) << "the call comes while the last microbatches are under way";
  const auto of_giver = [&](const Plan& plan) {
    return *std::ranges::find_if(plan.draft.contributors, [&](const wire::Contribution& c) {
      return c.peer == PeerId{giver} && c.slot == 0;
    });
  };
  council.works.at(giver).drop_queued();
  council.tells(giver, true);  // said before the plan reached it
  council.works.at(giver).lease(0, of_giver(first).microbatches);
  council.works_once(giver);
  council.lose(giver == 3 ? 2 : 3);
  const Plan second = council.work_until_called(first.version);
  EXPECT_EQ(of_giver(first), of_giver(second));
}

TEST(Lead, gives_up_a_joiner_that_holds_work_for_ever_though_there_is_one_member) {
  Council council({.members = {1}});
  council.everybody_tells();
  council.link(2);
  council.deaf.insert(2);
  council.tells(2);
  ASSERT_FALSE(council.leased[2].empty());
  for (int i = 0; i < 3000 && council.left_out().empty(); ++i) {
    council.works_once(1);
    council.after(100ms);
  }
  EXPECT_EQ(std::vector<std::uint64_t>{2}, council.left_out());
}

TEST(Lead, calls_nobody_when_joiners_alone_are_left_to_work) {
  Council council({.members = {1, 2}});
  council.everybody_tells();
  council.link(3);
  for (const std::uint64_t id : {1, 2}) council.report_stall(id, id, StallCause::too_large);
  for (int i = 0; i < 100; ++i) council.works_once(3);
  EXPECT_EQ(0U, council.last_plan.version) << "nobody could reduce";
  council.after(300ms);
  EXPECT_TRUE(council.lead.resigned()) << "another ballot asks the members once more";
}

TEST(Lead, leaves_to_the_next_round_what_a_joiner_had_that_goes) {
  Council council({.members = {1, 2}});
  council.everybody_tells();
  council.link(3);
  const Plan first = council.work_until_called();
  council.lose(3);
  EXPECT_TRUE(contributes(first.draft, 3));
  EXPECT_EQ(without(first.draft.contributors, 3), council.last_plan.draft.contributors);
}

TEST(Lead, gives_no_work_to_a_joiner_under_a_later_ballot_nor_to_one_with_the_id_of_a_member) {
  Council later({.leader = 2, .ballot = 1});
  later.after(100ms);
  for (const std::uint64_t id : {1, 2, 3}) later.promise(id);
  later.link(4);
  EXPECT_FALSE(contributes(later.work_until_called().draft, 4));
  Council back;
  back.live.at(PeerId{2}) = 77;
  back.lead.set_live(back.now, back.live);
  EXPECT_FALSE(contributes(back.work_until_called().draft, 2));
}

TEST(Lead, leaves_out_a_joiner_whose_vote_does_not_come_whatever_it_says_of_others) {
  for (const bool late_member : {false, true}) {
    Council council({.members = {1, 2, 3, 5, 6}});
    for (const std::uint64_t id : {3, 5, 6}) council.lose(id);
    council.link(3);
    council.candidates.insert(4);
    council.link(4);
    council.work_until_called();
    if (late_member) council.link(5);
    for (const std::uint64_t id : {1, 2, 3}) council.vote(id);
    for (int i = 0; i < 300 && council.left_out().empty(); ++i) {
      council.report_stall(4, 2, StallCause::owes_mean);
      council.after(100ms);
    }
    EXPECT_EQ((std::vector<std::uint64_t>{4}), council.left_out());
    EXPECT_TRUE(council.lead.committed().has_value() || council.lead.resigned());
  }
}

TEST(Lead, commits_without_a_candidate_that_goes) {
  Council council({.members = {1, 2}});
  council.candidates.insert(3);
  council.link(3);
  council.work_until_called();
  council.vote(1);
  council.vote(2);
  council.lose(3);
  EXPECT_TRUE(council.lead.committed().has_value());
}

TEST(Lead, takes_what_a_leaver_has_done_but_not_into_the_next_members) {
  Council council;
  council.everybody_tells();
  council.works_once(3);
  council.leaving.insert(3);
  council.works.at(3).drop_queued();
  council.tells(3, true);
  const Plan plan = council.work_until_called();
  EXPECT_TRUE(covers_the_batch(plan.draft, 16));
  EXPECT_TRUE(contributes(plan.draft, 3));
  EXPECT_EQ(members({1, 2}), plan.draft.members);
  EXPECT_TRUE(council.left_out().empty());
}

TEST(Lead, neither_leases_to_nor_keeps_a_peer_with_other_parameters) {
  Council council;
  council.parameters[3] = digest_of(std::string("others"));
  const Plan plan = council.work_until_called();
  EXPECT_FALSE(contributes(plan.draft, 3));
  EXPECT_FALSE(council.plans.contains(3));
  EXPECT_EQ(members({1, 2}), plan.draft.members);
}

TEST(Lead, recalls_from_the_slow_for_the_idle) {
  Council council({.members = {1, 2}});
  council.everybody_tells();
  for (int i = 0; i < 100 && !council.last_plan.version; ++i) council.works_once(1);
  EXPECT_TRUE(council.last_plan.version == 0 || contributes(council.last_plan.draft, 1));
  const Plan plan = council.work_until_called();
  EXPECT_TRUE(covers_the_batch(plan.draft, 16));
  EXPECT_GE(plan.draft.contributors.front().microbatches.count(), 15U) << "the other one did nothing";
}

// ---- losses

TEST(Lead, recalls_again_from_one_that_does_not_answer) {
  Council council;
  council.everybody_tells();
  council.deaf.insert(1);
  for (int i = 0; i < 100; ++i) {
    for (const std::uint64_t id : {2, 3}) council.works_once(id);
  }
  council.after(500ms);
  council.deaf.clear();
  const RangeSet before = council.leased[2];
  council.tells(1);
  EXPECT_EQ(before, council.leased[2]) << "1 was asked a moment ago";
  council.after(600ms);
  council.tells(1);
  EXPECT_GT(council.leased[2].count(), before.count()) << "1 gave back what it had not begun";
  EXPECT_GT(council.work_until_called().version, 0U);
  EXPECT_TRUE(council.left_out().empty());
}

TEST(Lead, gives_out_again_in_the_same_slot_what_one_had_that_is_lost_before_the_call) {
  Council council;
  council.everybody_tells();
  council.works_once(3);
  council.lose(3);
  const Plan plan = council.work_until_called();
  EXPECT_TRUE(covers_the_batch(plan.draft, 16));
  EXPECT_FALSE(contributes(plan.draft, 3));
  EXPECT_EQ(members({1, 2}), plan.draft.members);
  EXPECT_EQ(2U, plan.draft.contributors.size()) << "one slot each";
  const std::vector<world::Event> events = council.lead.take_events();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(world::Phase::reissue, events.back().phase());
}

TEST(Lead, leaves_to_the_next_round_what_one_had_that_is_lost_after_the_call) {
  Council council;
  const Plan first = council.work_until_called();
  council.leased.clear();
  council.lose(3);
  const Plan second = council.last_plan;
  ASSERT_GT(second.version, first.version) << "at once";
  EXPECT_TRUE(council.leased.empty()) << "nothing is computed for this round any more";
  EXPECT_EQ(without(first.draft.contributors, 3), second.draft.contributors);
  EXPECT_EQ("", fault_of(second.draft, council.head, {64, 4}));
  for (const wire::Share& share : second.shares) EXPECT_TRUE(share.owner != PeerId{3} && !share.sealed);
  council.lead.on_vote(PeerId{1}, {first.step(), 0, first.version, kMean});
  council.vote(2);
  EXPECT_FALSE(council.lead.committed().has_value()) << "a vote for the plan before does not count";
  council.vote(1);
  EXPECT_TRUE(council.lead.committed().has_value());
}

TEST(Lead, opens_a_slot_for_what_is_lost_after_the_call_where_it_has_to_be_made_good) {
  struct Case {
    std::vector<std::uint64_t> lost;
    Round rounds;
    bool exact;
  };

  for (const Case& c : {Case{{2, 3}, 100, false}, Case{{3}, 7, false}, Case{{3}, 100, true}}) {
    Council council({.lease = {64, 4, c.exact}, .rounds = c.rounds, .patience = 0s});
    council.work_until_called();
    for (const std::uint64_t id : c.lost) council.lose(id);
    council.after(100ms);  // the patience with a minority
    const Plan plan = council.work_until_called(council.last_plan.version);
    EXPECT_TRUE(covers_the_batch(plan.draft, 16)) << c.lost.size();
    EXPECT_EQ(1U, plan.draft.contributors.front().peer.value);
    EXPECT_EQ(0U, plan.draft.contributors.front().slot) << "what was called stays as it was";
    EXPECT_FALSE(contributes(plan.draft, 3));
  }
}

TEST(Lead, makes_the_round_whole_when_it_becomes_the_last_one_while_a_majority_is_waited_for) {
  Council council({.patience = 5s});
  council.tells(1);
  for (int i = 0; i < 10; ++i) council.works_once(1);
  council.work_until_called();
  for (const std::uint64_t id : {2, 3}) council.lose(id);
  council.after(1s);
  council.lead.end_run();
  council.after(6s);
  council.work_until_called(council.last_plan.version);
  EXPECT_TRUE(council.last_plan.draft.last);
  EXPECT_EQ("", fault_of(council.last_plan.draft, council.head, {64, 4}));
}

TEST(Lead, keeps_the_contribution_of_one_that_is_lost_when_somebody_has_the_mean) {
  Council council;
  const Plan first = council.work_until_called();
  council.vote(2);
  council.lose(3);
  const Plan& second = council.last_plan;
  EXPECT_GT(second.version, first.version);
  EXPECT_EQ(first.draft.contributors, second.draft.contributors);
  EXPECT_EQ((std::vector<PeerId>{PeerId{1}, PeerId{2}}), second.participants);
  for (std::size_t i = 0; i < first.shares.size(); ++i) {
    const bool was_lost = first.shares[i].owner == PeerId{3};
    EXPECT_EQ(was_lost ? PeerId{2} : first.shares[i].owner, second.shares[i].owner);
    EXPECT_EQ(was_lost, second.shares[i].sealed);
  }
  council.vote(1);
  council.vote(2);
  EXPECT_TRUE(council.lead.committed().has_value());
}

TEST(Lead, does_not_count_a_peer_that_was_gone_and_came_back) {
  Council council;
  council.everybody_tells();
  council.lose(3);
  council.link(3);
  const Plan plan = council.work_until_called();
  EXPECT_FALSE(contributes(plan.draft, 3));
  EXPECT_EQ(members({1, 2}), plan.draft.members);
}

TEST(Lead,
     commits_half_of_the_batch_or_more_whoever_is_lost_whenever_and_all_of_it_where_the_call_saw_no_loss) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Prng prng(seed);
    Council council({.members = {1, 2, 3, 4, 5}, .lease = {97, 4}});
    std::map<std::uint64_t, std::set<std::uint32_t>> voted;
    council.everybody_tells();
    int losses = 2;
    bool lost_after_call = false;
    for (int i = 0; i < 5000 && !council.lead.committed(); ++i) {
      const std::uint64_t id = 1 + prng.below(5);
      if (!council.live.contains(PeerId{id})) continue;
      if (losses > 0 && id != 1 && prng.chance(0.02)) {
        --losses;
        lost_after_call = lost_after_call || council.last_plan.version > 0;
        council.lose(id);
        continue;
      }
      if (prng.chance(0.7)) {
        council.works_once(id);
        continue;
      }
      const Plan& plan = council.last_plan;
      const auto done = [&](const wire::Contribution& c) {
        return council.works.at(c.peer.value).has_done_just(c.slot, c.microbatches);
      };
      const auto& needed = plan.draft.contributors;
      if (plan.version > 0 && std::all_of(needed.begin(), needed.end(), done)) council.vote(id);
    }
    ASSERT_TRUE(council.lead.committed().has_value()) << "seed " << seed;
    EXPECT_EQ("", fault_of(*council.lead.committed(), council.head, {97, 4})) << "seed " << seed;
    EXPECT_TRUE(lost_after_call || covers_the_batch(*council.lead.committed(), 25)) << "seed " << seed;
  }
}

// ---- stall reports

TEST(Lead, leaves_out_the_one_that_most_cannot_reach) {
  Council council({.members = {1, 2, 3, 4}});
  council.work_until_called();
  council.report_stall(3, 2, StallCause::unreachable);
  council.report_stall(2, 3, StallCause::unreachable);
  council.report_stall(3, 4, StallCause::unreachable);
  council.report_stall(4, 3, StallCause::unreachable);
  council.after(400ms);
  EXPECT_TRUE(council.left_out().empty()) << "others may still complain";
  council.after(2s);
  EXPECT_EQ(std::vector<std::uint64_t>{3}, council.left_out());
}

TEST(Lead, leaves_out_the_younger_of_two_that_accuse_each_other) {
  Council council({.members = {1, 3, 2}});
  council.work_until_called();
  council.report_stall(3, 2, StallCause::unreachable);
  council.report_stall(2, 3, StallCause::unreachable);
  council.after(2s);
  EXPECT_EQ(std::vector<std::uint64_t>{2}, council.left_out());
}

TEST(Lead, leaves_out_a_peer_whose_contribution_stays_away_beyond_the_expected_time) {
  Council council;
  council.work_until_called();
  const auto complain_for = [&](Duration duration) {
    for (Duration t{}; t < duration; t += 500ms) {
      council.report_stall(2, 3, StallCause::owes_contribution);
      council.after(500ms);
    }
  };
  complain_for(4500ms);
  EXPECT_TRUE(council.left_out().empty());
  complain_for(1500ms);
  EXPECT_EQ(std::vector<std::uint64_t>{3}, council.left_out());
}

TEST(Lead, gives_a_stalled_peer_no_more_time_because_a_joiner_comes) {
  Council council({.expected_reduce = 2s});
  council.work_until_called();
  council.after(4s);
  council.candidates.insert(4);
  council.link(4);
  council.tells(4);
  council.report_stall(1, 2, StallCause::owes_contribution);
  council.after(800ms);
  EXPECT_TRUE(council.left_out().empty());
  council.after(400ms);
  council.report_stall(1, 2, StallCause::owes_contribution);
  council.after(400ms);
  EXPECT_EQ(std::vector<std::uint64_t>{2}, council.left_out());
}

TEST(Lead, gives_a_joiner_its_time_to_get_the_mean) {
  Council council({.expected_reduce = 2s});
  council.work_until_called();
  for (const std::uint64_t id : {1, 2, 3}) {
    if (id == 3) council.after(9s);
    if (id != 3) council.vote(id);
  }
  council.candidates.insert(4);
  council.link(4);
  council.tells(4);
  for (const std::uint64_t id : {1, 2, 3}) council.vote(id);
  council.after(9s);
  EXPECT_TRUE(council.left_out().empty());
  council.after(2s);
  EXPECT_EQ(std::vector<std::uint64_t>{4}, council.left_out());
}

TEST(Lead, gives_out_again_what_a_peer_says_it_has_not_done) {
  Council council;
  const Plan first = council.work_until_called();
  council.report_stall(2, 2, StallCause::owes_contribution);
  const Plan second = council.work_until_called(first.version);
  EXPECT_TRUE(contributes(first.draft, 2));
  EXPECT_TRUE(covers_the_batch(second.draft, 16)) << "in the same round";
  for (const std::uint64_t id : {1, 2, 3}) council.vote(id);
  EXPECT_TRUE(council.lead.committed()) << "its vote counts";
}

TEST(Lead, bids_again_when_nobody_is_left_to_do_what_is_free) {
  Council council({.members = {1, 2}, .lease = {64, 4, true}});
  council.work_until_called();
  council.leaving.insert(1);
  council.tells(1);
  council.report_stall(1, 2, StallCause::not_finite);
  council.after(100ms);
  EXPECT_TRUE(council.lead.resigned()) << "1 takes no more work, 2 may under the next ballot";
}

TEST(Lead, forgets_a_stall_that_is_not_reported_again) {
  Council council;
  council.work_until_called();
  council.report_stall(2, 3, StallCause::owes_contribution);
  council.report_stall(1, 3, StallCause::owes_mean);
  council.after(10s);
  EXPECT_TRUE(council.left_out().empty());
}

TEST(Lead, leaves_out_one_that_owes_a_mean_only_if_it_waits_for_nobody) {
  Council council({.members = {1, 2, 3, 4}});
  council.work_until_called();
  council.after(6s);
  council.report_stall(1, 2, StallCause::owes_mean);
  council.report_stall(2, 3, StallCause::owes_contribution);
  council.after(200ms);
  EXPECT_EQ(std::vector<std::uint64_t>{3}, council.left_out()) << "2 waits for 3";
  council.after(6s);
  council.report_stall(1, 2, StallCause::owes_mean);
  council.after(200ms);
  EXPECT_EQ((std::vector<std::uint64_t>{3, 2}), council.left_out());
}

TEST(Lead, leaves_out_first_the_one_nearest_to_where_segments_come_from) {
  Council council({.members = {1, 2, 3, 4, 5, 6, 7}});
  council.work_until_called();
  council.after(6s);
  council.report_stall(1, 2, StallCause::owes_copy);
  council.report_stall(2, 3, StallCause::owes_mean);
  council.report_stall(3, 4, StallCause::owes_site_sum);
  council.after(200ms);
  EXPECT_EQ(std::vector<std::uint64_t>{4}, council.left_out());
  council.after(6s);
  council.report_stall(1, 2, StallCause::owes_copy);
  council.report_stall(2, 3, StallCause::owes_mean);
  council.after(200ms);
  EXPECT_EQ((std::vector<std::uint64_t>{4, 3}), council.left_out());
}

TEST(Lead, leaves_out_a_gradient_that_is_not_finite_or_too_large_at_once) {
  for (const StallCause cause : {StallCause::not_finite, StallCause::too_large}) {
    Council council;
    const Plan first = council.work_until_called();
    council.report_stall(1, 3, cause);
    const Plan second = council.work_until_called(first.version);
    EXPECT_FALSE(contributes(second.draft, 3));
    EXPECT_TRUE(covers_the_batch(second.draft, 16)) << "or it would wait in every next round";
    for (const wire::Share& share : second.shares) EXPECT_NE(PeerId{3}, share.owner);
    EXPECT_EQ(std::vector<std::uint64_t>{3}, council.left_out());
    council.vote(1);
    council.vote(2);
    EXPECT_FALSE(council.lead.committed().has_value()) << "it is here, and gets the mean";
    council.vote(3);
    EXPECT_TRUE(council.lead.committed().has_value());
  }
}

TEST(Lead, leaves_out_the_one_whose_mean_differs) {
  for (const std::uint64_t odd : {1, 2, 3}) {
    Council council;
    council.work_until_called();
    for (const std::uint64_t id : {1, 2, 3}) council.vote(id, id == odd ? kParameters : kMean);
    EXPECT_EQ(std::vector<std::uint64_t>{odd}, council.left_out());
    for (const std::uint64_t id : {1, 2, 3}) {
      if (id != odd) council.vote(id);
    }
    ASSERT_TRUE(council.lead.committed().has_value()) << odd;
    EXPECT_EQ(kMean, council.lead.committed()->mean);
  }
}

// ---- quorum

TEST(Lead, commits_nothing_without_a_majority_until_its_patience_ends) {
  Council council;
  council.everybody_tells();
  council.lose(2);
  council.lose(3);
  for (int i = 0; i < 50; ++i) council.works_once(1);
  council.after(9s);
  EXPECT_TRUE(council.plans.empty());
  EXPECT_EQ((std::vector<PeerId>{PeerId{2}, PeerId{3}}), council.lead.waiting().peers);
  council.after(2s);
  for (int i = 0; i < 50; ++i) council.works_once(1);
  council.vote(1);
  ASSERT_TRUE(council.lead.committed().has_value());
  EXPECT_TRUE(council.lead.committed()->minority);
  EXPECT_TRUE(covers_the_batch(*council.lead.committed(), 16));
}

TEST(Lead, marks_a_plan_that_was_called_with_a_majority_and_lost_it) {
  Council council;
  council.work_until_called();
  council.vote(1);
  council.lose(2);
  council.vote(1);
  council.lose(3);
  council.vote(1);
  council.after(9s);
  EXPECT_FALSE(council.lead.committed().has_value());
  council.after(2s);
  council.vote(1);
  ASSERT_TRUE(council.lead.committed().has_value());
  EXPECT_TRUE(council.lead.committed()->minority);
}

TEST(Lead, resigns_when_those_it_lost_are_back) {
  Council council;
  council.everybody_tells();
  council.lose(2);
  council.lose(3);
  council.after(1s);
  EXPECT_FALSE(council.lead.resigned());
  council.link(2);
  council.after(100ms);
  EXPECT_TRUE(council.lead.resigned()) << "a new ballot asks what they have";
}

// ---- other ballots

TEST(Lead, resigns_when_somebody_follows_a_higher_ballot) {
  Council told_by_progress;
  wire::Progress progress = told_by_progress.progress_of(2);
  progress.ballot = 4;
  told_by_progress.lead.on_progress(member(2), progress);
  EXPECT_TRUE(told_by_progress.lead.resigned());
  EXPECT_EQ(4U, told_by_progress.lead.proposer().outbid());
  Council told_by_promise;
  told_by_promise.lead.on_promise(PeerId{3}, {5, {}, {}, {}});
  EXPECT_TRUE(told_by_promise.lead.resigned());
  EXPECT_EQ(5U, told_by_promise.lead.proposer().outbid());
}

TEST(Lead, takes_over_with_the_work_that_is_done) {
  Council council({.leader = 2, .ballot = 1});
  council.lose(1);
  council.works.at(3).lease(0, RangeSet(Range{4, 3}));
  while (council.works.at(3).begin()) council.works.at(3).finish(1);
  council.after(100ms);
  EXPECT_EQ((std::multiset<std::uint64_t>{2, 3}), council.asked);
  council.promise(2);
  EXPECT_TRUE(council.leased.empty()) << "before all have promised";
  council.promise(3);
  const Plan plan = council.work_until_called();
  EXPECT_EQ(1U, plan.ballot);
  EXPECT_TRUE(covers_the_batch(plan.draft, 16));
  EXPECT_FALSE(council.leased[2].intersects(RangeSet(Range{4, 3}))) << "done already";
  EXPECT_EQ(2U, plan.draft.contributors.size()) << "nobody was called: the slots stay open";
}

TEST(Lead, leaves_to_the_next_round_what_a_leader_had_that_died_after_its_call) {
  Council council({.leader = 2, .ballot = 1});
  council.lose(1);
  council.works.at(3).lease(0, RangeSet(Range{0, 8}));
  while (council.works.at(3).begin()) council.works.at(3).finish(1);
  council.promise(2);
  council.promise(3, accepted_plan(council.head, 1, all_by(1), kMean).plan);
  EXPECT_EQ((std::vector<wire::Contribution>{{PeerId{3}, 0, 32, RangeSet(Range{0, 8})}}),
            council.last_plan.draft.contributors);
  EXPECT_TRUE(council.leased.empty());
}

TEST(Lead, opens_a_slot_when_it_takes_over_after_a_call_that_nobody_voted_for) {
  Council council({.leader = 2, .ballot = 1, .division = {.sites = SiteUse::flat}});
  council.lose(1);
  council.works.at(3).lease(0, RangeSet(Range{0, 5}));
  while (council.works.at(3).begin()) council.works.at(3).finish(1);
  council.promise(2);
  council.promise(3, accepted_plan(council.head, 1, all_by(1), kMean).plan);
  const Plan plan = council.work_until_called();
  EXPECT_TRUE(covers_the_batch(plan.draft, 16));
  const wire::Contribution called = {PeerId{3}, 0, 20, RangeSet(Range{0, 5})};
  EXPECT_EQ(1, std::count(plan.draft.contributors.begin(), plan.draft.contributors.end(), called));
  EXPECT_FALSE(contributes(plan.draft, 1));
}

TEST(Lead, finishes_the_newest_plan_that_anybody_voted_for) {
  Council council({.leader = 2, .ballot = 1});
  council.lose(1);
  const wire::Accepted older = accepted_plan(council.head, 1, all_by(1), kParameters);
  const wire::Accepted newer = accepted_plan(council.head, 2, all_by(3), kMean);
  council.promise(2, older.plan, older);
  council.promise(3, newer.plan, newer);
  const Plan& plan = council.last_plan;
  EXPECT_EQ(newer.plan.draft, plan.draft);
  EXPECT_EQ(1U, plan.ballot);
  EXPECT_EQ((std::vector<PeerId>{PeerId{2}, PeerId{3}}), plan.participants);
  for (const wire::Share& share : plan.shares)
    EXPECT_EQ(PeerId{3}, share.owner) << "nobody else has this mean";
  council.vote(3);
  EXPECT_FALSE(council.lead.committed().has_value());
  council.vote(2);
  wire::Record expected = newer.plan.draft;
  expected.mean = kMean;
  EXPECT_EQ(expected, council.lead.committed());
}

TEST(Lead, has_segments_of_the_plan_it_must_finish_served_by_another_when_one_that_is_needed_does_not_serve) {
  Council council({.members = {1, 2, 3, 4}, .leader = 2, .ballot = 1});
  council.lose(1);
  const wire::Accepted accepted = accepted_plan(council.head, 1, all_by(3), kMean);
  council.promise(2, accepted.plan, accepted);
  council.promise(3, accepted.plan, accepted);
  council.promise(4);
  for (const std::uint64_t id : {2, 3}) council.vote(id);
  council.after(6s);
  council.report_stall(4, 3, StallCause::owes_mean);
  council.after(200ms);
  for (const wire::Share& share : council.last_plan.shares) EXPECT_EQ(PeerId{2}, share.owner);
  for (const std::uint64_t id : {2, 3, 4}) council.vote(id);
  EXPECT_TRUE(council.lead.committed().has_value());
  EXPECT_TRUE(council.left_out().empty());
}

TEST(Lead, resigns_when_nobody_is_left_that_has_the_mean_of_the_plan_it_must_finish) {
  Council council({.leader = 2, .ballot = 1});
  const wire::Accepted accepted = accepted_plan(council.head, 1, all_by(3), kMean);
  council.promise(2);
  council.promise(3, accepted.plan, accepted);
  EXPECT_EQ(0U, council.last_plan.version) << "1 has not promised yet";
  council.lose(3);
  council.promise(1);
  EXPECT_TRUE(council.lead.resigned());
  EXPECT_FALSE(council.lead.committed().has_value());
}

TEST(Lead, asks_for_promises_again_and_needs_a_majority_of_them) {
  Council council({.members = {1, 2, 3, 4, 5}, .leader = 2, .ballot = 1});
  for (const std::uint64_t id : {1, 4, 5}) council.lose(id);
  council.after(1100ms);
  EXPECT_EQ(3U, council.asked.count(3)) << "every half second";
  council.promise(2);
  council.promise(3);
  council.after(1s);
  EXPECT_TRUE(council.leased.empty()) << "two of five decide nothing";
  council.after(10s);
  EXPECT_FALSE(council.leased.empty()) << "unless their patience has ended";
  EXPECT_TRUE(council.work_until_called().draft.minority);
}

}  // namespace
}  // namespace tw::swarm
