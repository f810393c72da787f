// SPDX-License-Identifier: Apache-2.0
#include "swarm/test_council.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

const RangeSet kGone(Range{0, 1});

/// All three peers fail at microbatch 0 of round 7; those of `may` can do without what is gone.
struct Gone : Council {
  explicit Gone(const std::set<std::uint64_t>& may) {
    everybody_tells();
    go_on({1, 2, 3}, may);
  }

  void go_on(const std::set<std::uint64_t>& ids, const std::set<std::uint64_t>& may = {}) {
    for (int i = 0; i < 100; ++i)
      for (const std::uint64_t id : ids) fails_or_works(id, may.contains(id));
  }

  void fails_or_works(std::uint64_t id, bool may) {
    Work& work = works.at(id);
    const std::optional<WorkItem> item = work.begin();
    if (!item) return;
    if (item->microbatches != kGone) {
      work.finish(1);
      return tells(id);
    }
    work.finish(0);
    if (item->skips) return;  // it has not come to it yet
    work.fail(0, {64, "a.tar: 404", may});
    work.drop_queued();
    lead.on_failures(PeerId{id}, work.failures());
    tells(id, true);
  }
};

TEST(LeadSkips, calls_when_the_peer_that_may_has_skipped) {
  Gone council({2});
  EXPECT_TRUE(council.works.at(2).held().contains(kGone)) << "it gets the lease again";
  EXPECT_EQ(council.last_plan.version, 0U);
  council.works_once(2);
  EXPECT_EQ(council.last_plan.version, 1U);
  EXPECT_EQ(council.lead.hopeless(), "");
}

TEST(LeadSkips, stops_the_run_when_no_peer_may_skip) { EXPECT_NE(Gone({}).lead.hopeless(), ""); }

TEST(LeadSkips, lets_another_peer_skip_when_the_first_is_killed) {
  Gone council({2, 3});
  ASSERT_TRUE(council.works.at(2).held().contains(kGone));
  council.lose(2);
  council.go_on({1, 3});
  EXPECT_EQ(council.lead.hopeless(), "");
  EXPECT_TRUE(council.works.at(3).held().contains(kGone));
}

TEST(LeadSkips, waits_for_a_peer_that_is_busy_now) {
  Gone council({2});
  council.candidates.insert(2);  // it asks for nothing
  council.works.at(2).drop_queued();
  council.tells(2, true);
  EXPECT_EQ(council.lead.hopeless(), "");
  EXPECT_FALSE(council.works.at(2).held().contains(kGone));
  council.candidates.erase(2);
  council.tells(2);
  EXPECT_TRUE(council.works.at(2).held().contains(kGone));
}

TEST(LeadSkips, gives_up_when_the_peer_that_might_is_gone) {
  Gone council({2});
  council.lose(2);
  EXPECT_NE(council.lead.hopeless(), "");
}

TEST(LeadSkips, asks_a_peer_whose_work_is_refused_under_a_new_ballot) {
  Gone council({2});
  council.report_stall(2, 2, wire::StallCause::not_finite);
  ASSERT_EQ(council.left_out(), std::vector<std::uint64_t>{2});
  EXPECT_EQ(council.lead.hopeless(), "");
  EXPECT_TRUE(council.lead.resigned());
}

}  // namespace
}  // namespace tw::swarm
