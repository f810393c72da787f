// SPDX-License-Identifier: Apache-2.0
#include "swarm/leases/lease_book.h"

#include "base/prng.h"
#include "swarm/ballots/test_records.h"
#include "swarm/leases/work.h"

namespace tw::swarm {
namespace {

using wire::Progress;

RangeSet range(std::uint64_t first, std::uint64_t count) { return RangeSet(Range{first, count}); }

/// Peers with their Work beside the leader's book.
struct Shop {
  explicit Shop(LeaseBook::Options options) : book(swarm::rules_of(options)) {}

  Progress said(std::uint64_t id, bool gave_back = false) {
    Progress progress;
    progress.samples_per_s = speeds[id];
    progress.grain = grains.contains(id) ? grains.at(id) : 1;
    progress.slots = works.at(id).progress();
    progress.wants_more = works.at(id).wants_more();
    progress.gave_back = gave_back;
    return progress;
  }

  void arrives(std::uint64_t id, double speed = 0) {
    works.try_emplace(id, Work(1));
    speeds[id] = speed;
    eligible.insert(PeerId{id});
    book.report(PeerId{id}, said(id));
  }

  std::vector<std::uint64_t> feed() {
    std::vector<std::uint64_t> sizes;
    for (const LeaseBook::Grant& grant : book.feed(eligible)) {
      works.at(grant.peer.value).lease(grant.slot, grant.microbatches);
      sizes.push_back(grant.microbatches.count());
    }
    return sizes;
  }

  void takes_all(std::uint64_t id) {
    while (book.has_free()) {
      Progress hungry = said(id);
      hungry.wants_more = true;
      book.report(PeerId{id}, hungry);
      for (const LeaseBook::Grant& grant : book.feed({PeerId{id}}))
        works.at(id).lease(grant.slot, grant.microbatches);
    }
  }

  void works_off(std::uint64_t id, int count) {
    while (count-- > 0 && works.at(id).begin()) works.at(id).finish(1);
    book.report(PeerId{id}, said(id));
  }

  void gives_back(std::uint64_t id) {
    works.at(id).drop_queued();
    book.report(PeerId{id}, said(id, true));
  }

  LeaseBook book;
  std::map<std::uint64_t, Work> works{};
  std::map<std::uint64_t, double> speeds{};
  std::map<std::uint64_t, std::uint64_t> grains{};  ///< others: 1
  std::set<PeerId> eligible{};
};

/// Free microbatches: all that a new peer would get.
RangeSet free_in(LeaseBook book) {
  const PeerId taker{1'000'000};
  RangeSet free;
  while (book.has_free()) {
    Progress hungry;
    hungry.wants_more = true;
    book.report(taker, hungry);
    for (const LeaseBook::Grant& grant : book.feed({taker})) free.add(grant.microbatches);
  }
  return free;
}

/// Free, held and done microbatches are disjoint and complete.
::testing::AssertionResult partitions(const LeaseBook& book, std::uint64_t count) {
  RangeSet all = free_in(book);
  for (const wire::Contribution& c : book.contributions(book.peers())) {
    if (all.intersects(c.microbatches))
      return ::testing::AssertionFailure()
             << to_string(c.microbatches) << " of " << to_string(c.peer) << " twice";
    all.add(c.microbatches);
  }
  if (all != RangeSet(Range{0, count})) return ::testing::AssertionFailure() << "only " << to_string(all);
  return ::testing::AssertionSuccess();
}

TEST(LeaseBook, takes_a_sum_from_its_giver_only_where_it_is_the_very_sum) {
  Shop shop({64, 4});
  shop.arrives(1);
  shop.takes_all(1);
  shop.works_off(1, 3);
  shop.gives_back(1);
  Progress keeps;
  keeps.slots = {{wire::kLeaseSlots, range(0, 2), {}}};
  shop.book.take_kept(PeerId{2}, keeps);
  EXPECT_EQ(0U, shop.book.kept_by(PeerId{2})) << "the giver's sum has a third microbatch";
  EXPECT_EQ(1U, shop.book.sums_of(PeerId{1}));
  keeps.slots.front().done = range(0, 3);
  shop.book.take_kept(PeerId{2}, keeps);
  EXPECT_EQ(1U, shop.book.kept_by(PeerId{2}));
  EXPECT_EQ(0U, shop.book.sums_of(PeerId{1}));
}

TEST(LeaseBook, counts_no_slot_whose_sum_was_lost) {
  LeaseBook book(swarm::rules_of({64, 4}));
  Progress lost;
  lost.slots = {{0, {}, {}}};
  EXPECT_FALSE(book.adopt(PeerId{1}, lost)) << "no further lease may go to it";
  EXPECT_TRUE(book.contributions({PeerId{1}}).empty());
}

TEST(LeaseBook, leases_in_whole_grains_while_there_are) {
  Shop shop({100, 1});
  shop.grains = {{1, 16}, {2, 24}};
  shop.arrives(1, 100);
  shop.arrives(2, 100);
  EXPECT_EQ((std::vector<std::uint64_t>{16, 24}), shop.feed());
  shop.takes_all(1);
  EXPECT_EQ(76U, shop.works.at(1).queued()) << "the last grant may be smaller";
}

TEST(LeaseBook, is_nearly_done_when_each_holds_what_it_does_at_once) {
  Shop shop({40, 1});
  shop.grains = {{1, 16}};
  shop.arrives(1, 100);
  shop.takes_all(1);
  shop.works_off(1, 23);
  EXPECT_FALSE(shop.book.nearly_done());
  shop.works_off(1, 1);
  EXPECT_TRUE(shop.book.nearly_done());
}

TEST(LeaseBook, asks_nobody_for_less_than_it_does_at_once) {
  Shop shop({40, 1});
  shop.grains = {{1, 16}};
  shop.arrives(1, 100);
  shop.takes_all(1);
  shop.arrives(2, 100);
  shop.works_off(1, 9);
  EXPECT_EQ(std::nullopt, shop.book.worth_recalling(shop.eligible)) << "it holds 31";
  Shop early({40, 1});
  early.grains = {{1, 16}};
  early.arrives(1, 100);
  early.takes_all(1);
  early.arrives(2, 100);
  early.works_off(1, 8);
  EXPECT_EQ(PeerId{1}, early.book.worth_recalling(early.eligible));
}

TEST(LeaseBook, never_loses_or_doubles_a_microbatch) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Prng prng(seed);
    const std::uint64_t count = 1 + prng.below(60);
    Shop shop({4 * count - prng.below(4), 4});
    for (int i = 0; i < 80; ++i) {
      const std::uint64_t id = 1 + prng.below(5);
      const std::uint64_t what = prng.below(7);
      if (!shop.works.contains(id)) {
        shop.grains[id] = 1 + prng.below(5);
        shop.arrives(id, static_cast<double>(prng.below(3) * 100));
      } else if (what <= 1) {
        shop.feed();
      } else if (what == 2) {
        shop.works_off(id, static_cast<int>(prng.below(6)));
      } else if (what == 3) {
        shop.gives_back(id);
      } else if (what == 4 && prng.chance(0.5)) {
        shop.book.forget(PeerId{id});
        shop.works.erase(id);
        shop.eligible.erase(PeerId{id});
      } else if (what == 5) {
        if (const auto slow = shop.book.worth_recalling(shop.eligible); slow && prng.chance(0.8))
          shop.gives_back(slow->value);
      } else if (prng.chance(0.2)) {
        shop.book.close_slots(prng.chance(0.2) ? wire::kLateSlot : 0);
      }
      ASSERT_TRUE(partitions(shop.book, count)) << "seed " << seed << ", step " << i;
      for (const auto& [peer, work] : shop.works) {
        for (const wire::Contribution& c : shop.book.contributions({PeerId{peer}})) {
          wire::SlotProgress held_or_done = {};
          for (const wire::SlotProgress& slot : work.progress()) {
            if (slot.slot == c.slot) held_or_done = slot;
          }
          held_or_done.done.add(held_or_done.held);
          ASSERT_EQ(held_or_done.done, c.microbatches) << "seed " << seed << ": book and peer disagree";
        }
      }
    }
  }
}

TEST(LeaseBook, never_loses_or_doubles_a_microbatch_that_a_new_leader_adopts) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Prng prng(seed);
    LeaseBook book(swarm::rules_of({240, 4}));
    for (std::uint64_t id = 1; id <= 6; ++id) {
      Progress told;
      for (std::uint32_t slot = 0; slot < prng.below(3); ++slot) {
        const std::uint64_t first = prng.below(70);  // 60 and above do not exist
        told.slots.push_back({slot, range(first, 1 + prng.below(8)), {}});
        if (prng.chance(0.5)) told.slots.back().held = range(told.slots.back().done.ranges()[0].end(), 1);
      }
      const bool whole = book.adopt(PeerId{id}, told);
      RangeSet counted;
      for (const wire::Contribution& c : book.contributions({PeerId{id}})) counted.add(c.microbatches);
      RangeSet claimed;
      for (const wire::SlotProgress& slot : told.slots) {
        claimed.add(slot.done);
        claimed.add(slot.held);
      }
      ASSERT_TRUE(claimed.contains(counted)) << "seed " << seed;
      ASSERT_TRUE(!whole || claimed == counted) << "seed " << seed;
      ASSERT_TRUE(partitions(book, 60)) << "seed " << seed;
    }
  }
}

TEST(LeaseBook, does_not_count_a_slot_that_claims_what_another_has) {
  LeaseBook book(swarm::rules_of({40, 4}));
  Progress first;
  first.slots = {{0, range(0, 3), {}}};
  Progress second;
  second.slots = {{0, range(2, 2), {}}, {1, range(8, 1), {}}};
  EXPECT_TRUE(book.adopt(PeerId{1}, first));
  EXPECT_FALSE(book.adopt(PeerId{2}, second));
  const std::vector<wire::Contribution> expected = {{PeerId{1}, 0, 12, range(0, 3)},
                                                    {PeerId{2}, 1, 4, range(8, 1)}};
  EXPECT_EQ(expected, book.contributions({PeerId{1}, PeerId{2}}));
  RangeSet free = range(3, 7);
  free.remove(Range{8, 1});
  EXPECT_EQ(free, free_in(book));
}

TEST(LeaseBook, loses_nothing_to_one_that_names_a_slot_twice) {
  LeaseBook book(swarm::rules_of({40, 4}));
  Progress told;
  told.slots = {{0, range(0, 2), {}}, {0, range(5, 2), {}}};
  book.adopt(PeerId{1}, told);
  EXPECT_TRUE(partitions(book, 10));
}

TEST(LeaseBook, cuts_grants_that_shrink_down_to_one) {
  Shop shop({400, 4});
  shop.arrives(1, 100);
  shop.arrives(2, 100);
  std::vector<std::uint64_t> sizes;
  while (shop.book.has_free()) {
    for (const std::uint64_t size : shop.feed()) sizes.push_back(size);
    for (const std::uint64_t id : {1, 2}) shop.works_off(id, 1000);
  }
  EXPECT_EQ(25U, sizes.front()) << "half of a fair part of 100 microbatches";
  EXPECT_EQ(1U, sizes.back());
  EXPECT_TRUE(std::is_sorted(sizes.rbegin(), sizes.rend()));
  EXPECT_TRUE(shop.book.nearly_done());
}

TEST(LeaseBook, gives_in_proportion_to_speed_once_all_are_measured) {
  Shop measured({800, 4});
  measured.arrives(1, 300);
  measured.arrives(2, 100);
  EXPECT_EQ((std::vector<std::uint64_t>{75, 15}), measured.feed());
  Shop unmeasured({800, 4});
  unmeasured.arrives(1, 300);
  unmeasured.arrives(2);
  EXPECT_EQ((std::vector<std::uint64_t>{50, 37}), unmeasured.feed());
}

TEST(LeaseBook, gives_an_idle_peer_what_a_slow_one_gives_back) {
  Shop shop({40, 4});
  shop.arrives(1, 100);
  shop.takes_all(1);
  shop.works.at(1).begin();
  shop.arrives(2, 100);
  EXPECT_FALSE(shop.book.nearly_done());
  ASSERT_EQ(PeerId{1}, shop.book.worth_recalling(shop.eligible));
  EXPECT_FALSE(shop.book.worth_recalling(shop.eligible).has_value()) << "asked already";
  shop.gives_back(1);
  EXPECT_EQ(range(1, 9), free_in(shop.book));
  EXPECT_EQ(std::vector<std::uint64_t>{2}, shop.feed()) << "a quarter of nine, to the idle one alone";
  EXPECT_EQ(range(1, 2), shop.book.contributions({PeerId{2}}).at(0).microbatches);
}

TEST(LeaseBook, gives_each_of_like_peers_work_ahead_of_the_round) {
  LeaseBook book(rules_of(TargetBatch{4, 1}));
  const std::vector<PeerId> peers = {PeerId{1}, PeerId{2}, PeerId{3}, PeerId{4}};
  for (const double speeds : {1.0, 1.01, 0.99, 1.02}) {
    wire::Progress progress;
    progress.samples_per_s = speeds;
    book.report(peers[static_cast<std::size_t>(speeds * 100) % 4], progress);
  }
  RangeSet all;
  for (const LeaseBook::Grant& grant : book.ahead(peers, 4)) {
    EXPECT_EQ(grant.microbatches.count(), 1U);
    all.add(grant.microbatches);
  }
  EXPECT_EQ(all.count(), 4U);
}

TEST(LeaseBook, does_not_call_before_a_recalled_peer_has_answered) {
  Shop shop({8, 4});
  shop.arrives(1, 100);
  shop.takes_all(1);
  shop.arrives(2, 100);
  ASSERT_EQ(PeerId{1}, shop.book.worth_recalling(shop.eligible));
  shop.works_off(1, 1);
  EXPECT_FALSE(shop.book.nearly_done());
  shop.works_off(1, 1);
  shop.gives_back(1);
  EXPECT_TRUE(shop.book.nearly_done());
}

TEST(LeaseBook, recalls_from_the_one_with_the_most_time_left) {
  Shop shop({160, 4});
  shop.arrives(1, 400);
  shop.arrives(2, 40);
  shop.feed();
  shop.takes_all(2);
  shop.arrives(3, 100);
  EXPECT_EQ(PeerId{2}, shop.book.worth_recalling(shop.eligible));
  EXPECT_EQ(PeerId{1}, shop.book.worth_recalling(shop.eligible));
  EXPECT_FALSE(shop.book.worth_recalling(shop.eligible).has_value());
}

TEST(LeaseBook, recalls_nothing_while_something_is_free_or_all_are_busy) {
  Shop shop({40, 4});
  shop.arrives(1, 100);
  shop.feed();
  shop.arrives(2, 100);
  EXPECT_FALSE(shop.book.worth_recalling(shop.eligible).has_value()) << "something is free";
  shop.feed();
  shop.takes_all(2);
  EXPECT_FALSE(shop.book.worth_recalling(shop.eligible).has_value()) << "both hold work";
}

TEST(LeaseBook, counts_the_samples_of_a_short_last_microbatch) {
  const LeaseBook book(swarm::rules_of({50, 4}));
  EXPECT_EQ(4U, book.samples(range(0, 1)));
  EXPECT_EQ(2U, book.samples(range(12, 1)));
  EXPECT_EQ(50U, book.samples(range(0, 13)));
  EXPECT_EQ(8U, LeaseBook(swarm::rules_of({8, 4})).samples(range(0, 2)));
}

TEST(LeaseBook, counts_as_done_only_what_was_leased) {
  Shop shop({40, 4});
  shop.arrives(1, 100);
  shop.arrives(2, 100);
  shop.feed();
  Progress boast;
  boast.slots = {{0, range(0, 10), {}}, {3, range(9, 1), {}}};
  shop.book.report(PeerId{2}, boast);
  EXPECT_TRUE(partitions(shop.book, 10));
  EXPECT_EQ(range(2, 2), shop.book.contributions({PeerId{2}}).at(0).microbatches);
}

TEST(LeaseBook, shows_by_the_slot_what_was_leased_after_the_call) {
  Shop shop({12, 4});
  shop.arrives(1, 100);
  shop.feed();
  shop.arrives(2, 100);
  shop.book.forget(PeerId{1});
  shop.book.close_slots(wire::kLateSlot);
  shop.arrives(3, 100);
  shop.feed();
  std::vector<std::uint32_t> slots;
  for (const wire::Contribution& c : shop.book.contributions({PeerId{2}, PeerId{3}})) slots.push_back(c.slot);
  EXPECT_EQ(slots, std::vector(2, wire::kLateSlot)) << "of a peer without a sum, and of one that came later";
}

TEST(LeaseBook, gives_nothing_to_one_that_leaves) {
  Shop shop({40, 4});
  shop.arrives(1, 100);
  Progress leaves = shop.said(1);
  leaves.leaving = true;
  shop.book.report(PeerId{1}, leaves);
  EXPECT_TRUE(shop.book.feed(shop.eligible).empty());
}

wire::Failures cannot_do(std::uint64_t microbatch, const std::string& why = "a.tar, bytes 0-9: 404") {
  return {1, range(microbatch, 1), why};
}

TEST(LeaseBook, gives_what_one_peer_cannot_do_to_another_one) {
  Shop shop({40, 4});
  shop.arrives(1, 100);
  shop.takes_all(1);
  shop.works_off(1, 3);
  shop.book.note_failures(PeerId{1}, cannot_do(3));
  shop.gives_back(1);
  EXPECT_EQ(range(3, 7), shop.book.free());
  while (!shop.feed().empty()) shop.works_off(1, 9);
  EXPECT_EQ(range(3, 1), shop.book.free()) << "the first peer gets all others";
  EXPECT_TRUE(shop.book.nearly_done());
  shop.arrives(2, 100);
  EXPECT_EQ((std::vector<std::uint64_t>{1}), shop.feed());
  EXPECT_EQ(std::vector<PeerId>{PeerId{2}}, shop.book.holders());
  EXPECT_FALSE(shop.book.nearly_done()) << "the second may fail, too: no plan may count on it yet";
  shop.works_off(2, 1);
  EXPECT_TRUE(shop.book.nearly_done());
  EXPECT_FALSE(shop.book.hopeless(shop.eligible).has_value());
  EXPECT_TRUE(partitions(shop.book, 10));
}

TEST(LeaseBook, gives_up_on_what_three_peers_or_all_that_are_there_cannot_do) {
  Shop shop({40, 4});
  const std::set<PeerId> able = {PeerId{1}, PeerId{2}, PeerId{3}, PeerId{4}};
  shop.book.note_failures(PeerId{1}, cannot_do(5));
  shop.book.note_failures(PeerId{1}, cannot_do(6, "newer"));
  shop.book.note_failures(PeerId{2}, cannot_do(5));
  EXPECT_FALSE(shop.book.hopeless(able).has_value());
  EXPECT_TRUE(shop.book.hopeless({PeerId{1}, PeerId{2}}).has_value()) << "nobody else is there";
  EXPECT_FALSE(shop.book.hopeless({PeerId{3}}).has_value());
  EXPECT_FALSE(shop.book.hopeless({}).has_value()) << "all leave, and others may come";
  shop.book.forget(PeerId{1});  // its failures are not forgotten
  shop.book.note_failures(PeerId{3}, cannot_do(5, "a.tar, bytes 50-59: 404"));
  shop.book.note_failures(PeerId{1}, cannot_do(6, "newer"));  // this one is known already
  const auto found = shop.book.hopeless(able);
  ASSERT_TRUE(found);
  EXPECT_EQ((std::vector<PeerId>{PeerId{1}, PeerId{2}, PeerId{3}}), found->failed);
  EXPECT_EQ("a.tar, bytes 50-59: 404", found->why);
  shop.arrives(4, 100);
  while (!shop.feed().empty()) shop.works_off(4, 9);
  EXPECT_EQ(range(5, 1), shop.book.free()) << "the fourth does not try";
  EXPECT_TRUE(shop.book.hopeless(able).has_value());
}

TEST(LeaseBook, asks_others_when_all_that_would_skip_a_sample_are_lost) {
  Shop shop({4, 4});
  for (const std::uint64_t peer : {1, 2, 3}) {
    wire::Failures failures = cannot_do(0);
    failures.skippable = range(0, 1);
    shop.book.note_failures(PeerId{peer}, failures);
  }
  ASSERT_TRUE(shop.book.hopeless({PeerId{4}}).has_value());
  for (const std::uint64_t peer : {1, 2, 3}) shop.book.forget(PeerId{peer});
  EXPECT_FALSE(shop.book.hopeless({PeerId{4}}).has_value()) << "it may try";
}

/// Two peers have failed at microbatch 5. The second can do without what is gone.
struct ShopWithoutOne : Shop {
  ShopWithoutOne() : Shop({40, 4}) {
    for (const std::uint64_t id : {1, 2}) arrives(id, 100);
    wire::Failures skippable = cannot_do(5);
    skippable.skippable = skippable.microbatches;
    book.note_failures(PeerId{1}, cannot_do(5));
    book.note_failures(PeerId{2}, skippable);
  }

  /// The peer that skips it now, if any.
  std::optional<std::uint64_t> skipper() {
    const std::optional<LeaseBook::Grant> grant = book.grant_to_skip(eligible, 5);
    if (!grant) return std::nullopt;
    EXPECT_EQ(range(5, 1), grant->microbatches);
    works.at(grant->peer.value).lease(grant->slot, grant->microbatches);
    return grant->peer.value;
  }
};

TEST(LeaseBook, lets_a_peer_skip_what_nobody_can_do) {
  ShopWithoutOne shop;
  EXPECT_FALSE(shop.book.grant_to_skip({PeerId{1}}, 5)) << "this one cannot do without";
  EXPECT_EQ(2U, shop.skipper());
  EXPECT_FALSE(shop.book.hopeless(shop.eligible).has_value()) << "it is not free";
  EXPECT_FALSE(shop.book.nearly_done());
  shop.works_off(2, 1);
  EXPECT_TRUE(shop.book.nearly_done());
}

TEST(LeaseBook, lets_a_peer_skip_again_after_a_recall) {
  ShopWithoutOne shop;
  const LeaseBook::Grant other = shop.book.feed({PeerId{2}}).at(0);
  shop.works.at(2).lease(other.slot, other.microbatches);
  shop.works_off(2, static_cast<int>(other.microbatches.count()) - 1);
  ASSERT_TRUE(shop.works.at(2).begin());
  shop.book.report(PeerId{2}, shop.said(2));
  ASSERT_EQ(2U, shop.skipper()) << "it asks for more while it computes the last one";
  ASSERT_EQ(PeerId{2}, shop.book.worth_recalling(shop.eligible, true));
  EXPECT_FALSE(shop.skipper());
  shop.gives_back(2);
  EXPECT_TRUE(shop.book.hopeless(shop.eligible).has_value());
  EXPECT_FALSE(shop.skipper()) << "it has work";
  EXPECT_TRUE(shop.book.may_skip(PeerId{2}, 5)) << "later";
  shop.works.at(2).finish(1);
  shop.book.report(PeerId{2}, shop.said(2));
  EXPECT_EQ(2U, shop.skipper());
}

TEST(LeaseBook, lets_another_peer_skip_when_the_first_is_killed) {
  ShopWithoutOne shop;
  ASSERT_EQ(2U, shop.skipper());
  shop.book.forget(PeerId{2});
  EXPECT_FALSE(shop.skipper()) << "it is not here";
  wire::Failures skippable = cannot_do(5);
  skippable.skippable = skippable.microbatches;
  shop.book.note_failures(PeerId{1}, skippable);
  EXPECT_EQ(1U, shop.skipper());
}

TEST(LeaseBook, lets_no_peer_skip_that_does_not_ask_or_has_failed_at_it_again) {
  ShopWithoutOne shop;
  Progress busy = shop.said(2);
  busy.wants_more = false;
  shop.book.report(PeerId{2}, busy);
  EXPECT_FALSE(shop.skipper());
  EXPECT_TRUE(shop.book.may_skip(PeerId{2}, 5)) << "later";
  shop.book.report(PeerId{2}, shop.said(2));
  EXPECT_EQ(2U, shop.skipper());
  shop.book.note_failures(PeerId{2}, cannot_do(5));
  shop.gives_back(2);
  EXPECT_FALSE(shop.skipper());
  EXPECT_FALSE(shop.book.may_skip(PeerId{2}, 5));
}

TEST(Work, has_what_failed_here_by_itself_when_it_comes_again) {
  Work work(1);
  work.lease(0, range(0, 4));
  ASSERT_TRUE(work.begin(2));
  work.finish(0);
  work.fail(1, {70, "404", true});
  work.drop_queued();
  work.lease(0, range(0, 4));
  const auto others = work.begin(4);
  ASSERT_TRUE(others);
  EXPECT_EQ(others->microbatches.count(), 3U);
  EXPECT_FALSE(others->skips);
  work.finish(3);
  const auto again = work.begin(4);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->microbatches, range(1, 1));
  EXPECT_TRUE(again->skips);
  EXPECT_EQ(work.failures().skippable, range(1, 1));
  work.finish(0);
  work.fail(1, {71, "not a JPEG", false});
  EXPECT_TRUE(work.failures().skippable.empty());
}

TEST(LeaseBook, frees_all_of_a_lost_peer_done_or_not) {
  Shop shop({40, 4});
  shop.arrives(1, 100);
  shop.feed();
  shop.works_off(1, 2);
  EXPECT_EQ(range(0, 5), shop.book.forget(PeerId{1}));
  EXPECT_EQ(range(0, 10), free_in(shop.book));
  EXPECT_TRUE(shop.book.forget(PeerId{1}).empty());
  EXPECT_TRUE(shop.book.holders().empty());
}

}  // namespace
}  // namespace tw::swarm
