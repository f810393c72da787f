// SPDX-License-Identifier: Apache-2.0
#include "swarm/ballots/validation.h"
#include "swarm/test_council.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

RangeSet microbatches(std::uint64_t first, std::uint64_t count) { return RangeSet(Range{first, count}); }

/// Peer 2 takes over round 7 from peer 1, which is gone, after a call without votes. The round has 16
/// microbatches; 2 and 3 have done one each, in their last slots.
struct Exhausted {
  explicit Exhausted(bool exact)
      : council({.members = {1, 2, 3}, .leader = 2, .ballot = 1, .lease = {64, 4, exact}}) {
    council.lose(1);
    tells(2, wire::kLeaseSlots - 1, microbatches(0, 1));
    tells(3, wire::kLeaseSlots - 1, microbatches(1, 1));
  }

  void tells(std::uint64_t id, std::uint32_t slot, RangeSet done) {
    wire::Progress progress = council.progress_of(id);
    progress.slots = {{slot, std::move(done), {}}};
    wire::Plan called;
    called.draft.round = 7;
    council.lead.on_promise(PeerId{id}, {council.lead.ballot(), progress, called, {}});
  }

  Council council;
};

TEST(LeadSlots, leaves_the_rest_to_the_next_round_when_nobody_has_a_slot_left) {
  for (const bool exact : {false, true}) {
    Exhausted story(exact);
    story.council.after(300ms);
    const wire::Plan& plan = story.council.last_plan;
    ASSERT_EQ(plan.draft.contributors.size(), 2U) << "called with what there is";
    EXPECT_EQ(plan.draft.samples, 8U);
    EXPECT_EQ(fault_of(plan.draft, story.council.head, {64, 4, exact}), "") << "and others take it";
    EXPECT_TRUE(story.council.leased.empty());
    bool told = false;
    for (const world::Event& event : story.council.lead.take_events()) {
      const auto* again = event.as<event::Reissue>();
      told = told || (again && event.why == to_string(microbatches(2, 14)) && again->next_round);
    }
    EXPECT_TRUE(told);
    story.council.vote(2);
    story.council.vote(3);
    EXPECT_TRUE(story.council.lead.committed());
  }
}

TEST(LeadSlots, gives_the_rest_to_one_that_has_a_slot_left) {
  Council council({.members = {1, 2, 3}, .leader = 2, .ballot = 1, .lease = {64, 4, true}});
  Exhausted story(true);
  council.lose(1);
  wire::Progress used_up = council.progress_of(2);
  used_up.slots = {{wire::kLeaseSlots - 1, microbatches(0, 1), {}}};
  wire::Plan called;
  called.draft.round = 7;
  council.lead.on_promise(PeerId{2}, {council.lead.ballot(), used_up, called, {}});
  council.promise(3);
  council.tells(3);
  EXPECT_FALSE(council.leased.contains(2));
  EXPECT_FALSE(council.leased[3].empty());
}

TEST(LeadSlots, counts_the_slots_of_each_peer_by_themselves) {
  LeaseBook book(swarm::rules_of({64, 4}));
  wire::Progress hungry;
  hungry.wants_more = true;
  book.report(PeerId{1}, hungry);
  EXPECT_EQ(book.feed({PeerId{1}}).front().slot, 0U);
  book.close_slots();
  book.report(PeerId{1}, hungry);
  book.report(PeerId{2}, hungry);
  for (const LeaseBook::Grant& grant : book.feed({PeerId{1}, PeerId{2}}))
    EXPECT_EQ(grant.slot, grant.peer == PeerId{1} ? 1U : 0U);
}

}  // namespace
}  // namespace tw::swarm
