// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/reduction.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "average/reduction/test_decoded.h"
#include "wire/frame.h"

namespace tw::average {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using wire::Plan;
using wire::Scatter;

constexpr PeerId kSelf{1};
constexpr PeerId kOther{2};
constexpr PeerId kThird{3};
constexpr PeerId kStranger{9};
constexpr Round kRound = 5;
constexpr Geometry kGeometry{.length = 7, .segment_length = 2};  // segments of 2, 2, 2, 1 floats

Blob encoded(const std::vector<float>& values) {
  std::vector<std::byte> bytes(encoded_bytes(codec::Codec::fp32, values.size()));
  encode(codec::Codec::fp32, values, 1.0F, bytes);
  return Blob(std::move(bytes));
}

std::vector<float> mean_of(const Reduction& reduction) {
  return decoded(codec::Codec::fp32, kGeometry, reduction.mean().segments());
}

Scatter scatter(std::uint64_t segment, float value = 1, std::uint32_t slot = 0) {
  return {{kRound}, slot, segment, encoded(std::vector<float>(kGeometry.size(segment), value))};
}

wire::Gather gather(const Plan& plan, std::uint64_t segment, float value = 1) {
  const std::vector<float> values(kGeometry.size(segment), value);
  return {{kRound}, plan.ballot, plan.version, contribution_set(plan.draft), segment, encoded(values)};
}

wire::Contribution contribution(PeerId peer, std::uint64_t samples = 1, std::uint32_t slot = 0) {
  return {peer, slot, samples, RangeSet(Range{peer.value * 100 + slot, 1})};
}

/// Self owns segments 0 and 1, kOther 2 and 3; both contribute, and the third peer only participates.
Plan plan_of_two(std::uint32_t version = 1) {
  Plan plan;
  plan.version = version;
  plan.draft.round = kRound;
  plan.draft.contributors = {contribution(kSelf), contribution(kOther)};
  plan.shares = {{kSelf, 0, 2}, {kOther, 2, 2}};
  plan.participants = {kSelf, kOther, kThird};
  return plan;
}

/// As above, but self contributes two samples.
Plan plan_for_two_samples() {
  Plan plan = plan_of_two();
  plan.draft.contributors[0].samples = 2;
  return plan;
}

std::string why(const Status& status) { return status ? "accepted" : status.error().message; }

class ReductionTest : public ::testing::Test {
 protected:
  explicit ReductionTest(Reduction::Options options = {})
      : reduction({.self = kSelf, .step = {kRound}, .geometry = kGeometry, .norm_cap = options.norm_cap}) {}

  std::vector<std::string> pull(PeerId to) {
    std::vector<std::string> names;
    while (const auto message = reduction.next_bulk(to)) {
      const auto* piece = std::get_if<Scatter>(&*message);
      names.push_back(piece != nullptr
                          ? "scatter " + std::to_string(piece->segment)
                          : "gather " + std::to_string(std::get<wire::Gather>(*message).segment));
    }
    return names;
  }

  std::vector<std::string> unfit() {
    std::vector<std::string> all;
    for (const Unfit& u : reduction.take_unfit()) {
      const std::string peer = std::to_string(u.peer.value);
      all.push_back(u.why == wire::StallCause::too_large ? fmt::format("norm {} of {}", u.norm, peer)
                                                         : "not finite " + peer);
    }
    return all;
  }

  std::vector<float> ones = std::vector<float>(kGeometry.length, 1.0F);
  Reduction reduction;
};

TEST_F(ReductionTest, hands_out_contributions_when_slot_and_plan_are_there_and_results_later) {
  reduction.contribute(0, {ones}, 1);
  EXPECT_THAT(reduction.take_wakeups(), IsEmpty());
  EXPECT_FALSE(reduction.scattered());
  EXPECT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  EXPECT_THAT(reduction.take_wakeups(), ElementsAre(kOther));
  EXPECT_THAT(reduction.take_wakeups(), IsEmpty());
  EXPECT_THAT(reduction.owing(), ElementsAre(Key(kOther)));
  EXPECT_TRUE(reduction.on_scatter(kOther, scatter(1, 3.0F)));
  EXPECT_THAT(reduction.take_wakeups(), ElementsAre(kOther, kThird));
  EXPECT_THAT(pull(kOther), ElementsAre("scatter 2", "scatter 3", "gather 1"));
  EXPECT_FALSE(reduction.scattered()) << "segment 0 is not sealed";
  EXPECT_TRUE(reduction.on_scatter(kOther, scatter(0, 3.0F)));
  EXPECT_TRUE(reduction.scattered());
  EXPECT_THAT(pull(kThird), ElementsAre("gather 1", "gather 0"));
  EXPECT_THAT(pull(kStranger), IsEmpty());
  EXPECT_FALSE(reduction.complete());
  EXPECT_TRUE(reduction.on_gather(kOther, gather(plan_of_two(), 2, 2.0F)));
  EXPECT_TRUE(reduction.on_gather(kOther, gather(plan_of_two(), 3, 2.0F)));
  ASSERT_TRUE(reduction.complete());
  EXPECT_THAT(reduction.owing(), IsEmpty());
  EXPECT_THAT(mean_of(reduction), ::testing::Each(2.0F));
  EXPECT_EQ(reduction.mean().segments().size(), 4U);
  EXPECT_EQ(reduction.mean().segments()[3].size(), 4U);
}

TEST_F(ReductionTest, tells_how_much_of_what_each_owes_is_here) {
  const auto debts = [&] {
    std::vector<std::string> all;
    for (const Reduction::Debt& d : reduction.debts()) {
      all.push_back(fmt::format("{} {} of {} {}", d.contributes ? "contribution" : "mean", d.here, d.all,
                                d.peer.value));
    }
    return all;
  };
  const std::string other = std::to_string(kOther.value);
  EXPECT_THAT(debts(), IsEmpty());
  reduction.contribute(0, {ones}, 1);
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  EXPECT_THAT(debts(), ElementsAre("contribution 0 of 2 " + other, "mean 0 of 2 " + other));
  EXPECT_EQ(reduction.missing_of(kOther), RangeSet(Range{2, 2}));
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(1, 3.0F)));
  ASSERT_TRUE(reduction.on_gather(kOther, gather(plan_of_two(), 2, 2.0F)));
  EXPECT_THAT(debts(), ElementsAre("contribution 1 of 2 " + other, "mean 1 of 2 " + other));
  EXPECT_EQ(reduction.missing_of(kOther), RangeSet(Range{3, 1}));
  EXPECT_EQ(reduction.missing_of(kThird), RangeSet());
}

TEST_F(ReductionTest, refuses_malformed_segments_with_the_values_that_are_wrong) {
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  Scatter wrong = scatter(0);
  wrong.segment = 4;
  EXPECT_THAT(why(reduction.on_scatter(kOther, wrong)), HasSubstr("segment 4 of a vector of 4"));
  wrong = scatter(0);
  wrong.payload = encoded({1, 2, 3});
  EXPECT_THAT(why(reduction.on_scatter(kOther, wrong)), HasSubstr("12 bytes instead of 8"));
  wrong = scatter(0);
  wrong.step.round = 4;
  EXPECT_THAT(why(reduction.on_scatter(kOther, wrong)), HasSubstr("round 4 instead of 5"));
  EXPECT_THAT(why(reduction.on_scatter(kOther, scatter(0, 1, wire::kMostSlots))), HasSubstr("slots end"));
  EXPECT_THAT(why(reduction.on_scatter(kSelf, scatter(0))), HasSubstr("this peer itself"));
  wire::Gather result = gather(plan_of_two(), 3);
  result.segment = 2;
  EXPECT_THAT(why(reduction.on_gather(kOther, result)), HasSubstr("4 bytes instead of 8"));
  EXPECT_THAT(reduction.owing(), ElementsAre(Key(kOther)));
}

TEST_F(ReductionTest, uses_nothing_from_a_peer_that_no_plan_names) {
  reduction.contribute(0, {ones}, 1);
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  EXPECT_TRUE(reduction.on_scatter(kStranger, scatter(0)));
  EXPECT_TRUE(reduction.on_gather(kStranger, gather(plan_of_two(), 2)));
  EXPECT_THAT(reduction.owing(), ElementsAre(Key(kOther)));
  EXPECT_EQ(reduction.missing_of(kOther), RangeSet(Range{2, 2}));
}

TEST_F(ReductionTest, a_second_copy_changes_nothing) {
  reduction.contribute(0, {ones}, 1);
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(0, 3.0F)));
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(1, 3.0F)));
  EXPECT_THAT(why(reduction.on_scatter(kOther, scatter(0, 9.0F))), HasSubstr("sent twice"));
  ASSERT_TRUE(reduction.on_gather(kOther, gather(plan_of_two(), 2, 2.0F)));
  EXPECT_THAT(why(reduction.on_gather(kOther, gather(plan_of_two(), 2, 9.0F))), HasSubstr("sent twice"));
  EXPECT_TRUE(reduction.on_gather(kThird, gather(plan_of_two(), 2, 2.0F))) << "a successor may send it too";
  ASSERT_TRUE(reduction.on_gather(kOther, gather(plan_of_two(), 3, 2.0F)));
  EXPECT_THAT(mean_of(reduction), ::testing::Each(2.0F));
  EXPECT_THAT(pull(kThird), ElementsAre("gather 0", "gather 1"));
}

TEST_F(ReductionTest, uses_what_came_before_its_plan) {
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(0, 3.0F)));
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(1, 3.0F)));
  ASSERT_TRUE(reduction.on_gather(kOther, gather(plan_of_two(), 2, 2.0F)));
  ASSERT_TRUE(reduction.on_gather(kOther, gather(plan_of_two(), 3, 2.0F)));
  ASSERT_TRUE(reduction.on_gather(kStranger, gather(plan_of_two(), 0, 9.0F))) << "nobody is a stranger yet";
  reduction.contribute(0, {ones}, 1);
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  ASSERT_TRUE(reduction.complete());
  EXPECT_THAT(mean_of(reduction), ::testing::Each(2.0F)) << "what a stranger sent is not used";
}

// The other peer is two plans ahead: its set must survive the plan in between.
TEST_F(ReductionTest, keeps_the_latest_set_of_a_sender_until_its_plan_comes) {
  Plan between = plan_of_two(2);
  between.draft.contributors = {contribution(kOther)};
  Plan last = plan_of_two(3);
  last.draft.contributors = {contribution(kOther, 8)};
  last.shares = {{kOther, 0, 4}};
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  ASSERT_TRUE(reduction.on_gather(kOther, gather(plan_of_two(), 2, 1.0F)));
  for (std::uint64_t s = 0; s < 4; ++s) ASSERT_TRUE(reduction.on_gather(kOther, gather(last, s, 4.0F)));
  EXPECT_THAT(why(reduction.on_gather(kOther, gather(last, 2, 4.0F))), HasSubstr("sent twice"));
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(between)));
  EXPECT_FALSE(reduction.complete());
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(last)));
  ASSERT_TRUE(reduction.complete());
  EXPECT_THAT(mean_of(reduction), ::testing::Each(4.0F));
}

TEST_F(ReductionTest, keeps_no_more_than_the_bound_of_what_nobody_asked_for) {
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  std::uint64_t bytes = 0;
  for (std::uint32_t slot = 1; slot < wire::kMostSlots; ++slot) {
    for (std::uint64_t s = 0; s < 4; ++s) {
      if (reduction.on_scatter(kOther, scatter(s, 1, slot)))
        bytes += encoded_bytes(codec::Codec::fp32, kGeometry.size(s));
    }
  }
  EXPECT_EQ(bytes, Reduction::kEarlyVectors * encoded_bytes(codec::Codec::fp32, kGeometry.length));
  const std::uint64_t places = KeptContributions::slot_bytes(kGeometry.segments());
  EXPECT_EQ(reduction.held_bytes(), bytes + Reduction::kEarlyVectors * places);
  EXPECT_THAT(why(reduction.on_scatter(kOther, scatter(3, 1, 15))), HasSubstr("no plan asks for"));
  EXPECT_TRUE(reduction.on_scatter(kOther, scatter(0))) << "the plan asks for this one";
  EXPECT_TRUE(reduction.on_scatter(kThird, scatter(0))) << "each sender has its own bound";
}

TEST_F(ReductionTest, names_whoever_sends_values_that_are_not_finite_once) {
  const float inf = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  EXPECT_THAT(why(reduction.on_scatter(kOther, scatter(0, std::nanf("")))), HasSubstr("NaN"));
  EXPECT_FALSE(reduction.on_scatter(kOther, scatter(1, inf)));
  EXPECT_FALSE(reduction.on_gather(kThird, gather(plan_of_two(), 2, -inf)));
  EXPECT_THAT(unfit(), ElementsAre("not finite 2", "not finite 3"));
  EXPECT_THAT(unfit(), IsEmpty());
  EXPECT_TRUE(reduction.on_scatter(kOther, scatter(0, 3.0F))) << "the bad segment was not kept";
}

TEST_F(ReductionTest, names_whoever_sends_a_mean_of_its_site_that_is_not_finite) {
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  wire::Gather of_site = gather(plan_of_two(), 0, std::nanf(""));
  of_site.of_site = true;
  EXPECT_THAT(why(reduction.on_gather(kOther, of_site)), HasSubstr("NaN"));
  EXPECT_THAT(unfit(), ElementsAre("not finite 2"));
  of_site = gather(plan_of_two(), 0, 3.0F);
  of_site.of_site = true;
  EXPECT_TRUE(reduction.on_gather(kOther, of_site)) << "the bad segment was not kept";
}

TEST_F(ReductionTest, names_itself_when_its_own_values_are_not_finite) {
  ones[3] = std::nanf("");
  reduction.contribute(0, {ones}, 1);
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(1)));
  EXPECT_THAT(unfit(), ElementsAre("not finite 1"));
  EXPECT_THAT(pull(kThird), IsEmpty());
  Plan without = plan_of_two(2);
  without.draft.contributors = {contribution(kOther)};
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(without)));
  EXPECT_THAT(pull(kThird), ElementsAre("gather 1"));
}

TEST_F(ReductionTest, drops_what_a_stranger_sent_with_its_link_and_takes_it_again) {
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  const std::uint64_t before = reduction.held_bytes();
  for (std::uint64_t id = 100; id < 10'100; ++id) {
    ASSERT_TRUE(reduction.on_scatter(PeerId{id}, scatter(0)));
    ASSERT_TRUE(reduction.on_gather(PeerId{id}, gather(plan_of_two(), 2)));
    reduction.on_lost_link(PeerId{id});
  }
  EXPECT_EQ(reduction.held_bytes(), before);
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(0)));
  reduction.on_lost_link(kOther);
  EXPECT_FALSE(reduction.on_scatter(kOther, scatter(0))) << "the plan counts on it: it was kept";
  EXPECT_TRUE(reduction.on_scatter(PeerId{100}, scatter(0)));
}

class NormCap : public ReductionTest {
 protected:
  NormCap() : ReductionTest({.norm_cap = 5}) {}
};

TEST_F(NormCap, refuses_a_segment_that_is_alone_beyond_it_and_names_its_sender) {
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  Scatter piece = scatter(0);
  piece.payload = encoded({3, 4.1F});
  EXPECT_THAT(why(reduction.on_scatter(kOther, piece)), HasSubstr("beyond the cap 5"));
  EXPECT_THAT(unfit(), ElementsAre(::testing::StartsWith("norm 5.08")));
  piece.payload = encoded({3, -4});
  EXPECT_TRUE(reduction.on_scatter(kOther, piece)) << "the first was not kept, and the cap itself is fine";
  EXPECT_THAT(unfit(), IsEmpty());
}

TEST_F(NormCap, is_of_the_gradient_per_sample) {
  std::vector<float> threes(kGeometry.length, 3.0F);  // 7.9 in all
  reduction.contribute(0, {threes}, 2);
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_for_two_samples())));
  EXPECT_THAT(pull(kOther), ElementsAre("scatter 2", "scatter 3"));
  EXPECT_THAT(unfit(), IsEmpty());
}

TEST_F(NormCap, is_of_all_segments_of_a_contribution_together) {
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(0, 3)));  // 4.2 in a segment of two
  EXPECT_THAT(why(reduction.on_scatter(kOther, scatter(1, 3))), HasSubstr("beyond the cap 5"));
  EXPECT_THAT(unfit(), ElementsAre(::testing::StartsWith("norm 5.99")));
  EXPECT_TRUE(reduction.on_scatter(kThird, scatter(1, 3))) << "it is another one's";
}

TEST_F(NormCap, is_of_the_whole_of_an_own_contribution_whose_segments_count_once) {
  std::vector<float> values(kGeometry.length, 2.0F);  // 2.8 in each of the two that go to the other peer
  values[6] = 1;
  reduction.contribute(0, {values}, 1);
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  EXPECT_THAT(pull(kOther), ElementsAre("scatter 2", "scatter 3"));
  reduction.on_new_link(kOther);
  EXPECT_THAT(pull(kOther), ElementsAre("scatter 2", "scatter 3"));
  EXPECT_THAT(unfit(), IsEmpty());
  values[0] = 6;  // in a segment that no other peer sees
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(0)));
  EXPECT_THAT(unfit(), ElementsAre(::testing::EndsWith("of 1")));
}

TEST_F(NormCap, keeps_an_own_contribution_beyond_it_from_being_sent_or_added) {
  ones[4] = 6;  // segment 2 goes to the other peer
  reduction.contribute(0, {ones}, 1);
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  EXPECT_THAT(pull(kOther), IsEmpty());
  EXPECT_THAT(unfit(), ElementsAre(::testing::EndsWith("of 1")));
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(1)));
  EXPECT_THAT(pull(kThird), IsEmpty()) << "not even a segment that is within it";
  Plan without = plan_of_two(2);
  without.draft.contributors = {contribution(kOther)};
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(without)));
  EXPECT_THAT(pull(kThird), ElementsAre("gather 1"));
  EXPECT_THAT(unfit(), IsEmpty());
}

TEST_F(NormCap, is_told_again_to_whoever_counts_on_such_a_contribution) {
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  EXPECT_FALSE(reduction.on_scatter(kOther, scatter(0, 9)));
  EXPECT_FALSE(reduction.on_scatter(kOther, scatter(1, 9)));
  EXPECT_THAT(unfit(), ::testing::SizeIs(1));
  Plan of_another_leader = plan_of_two();
  of_another_leader.ballot = 1;
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(of_another_leader)));
  EXPECT_THAT(unfit(), ::testing::SizeIs(1));
  of_another_leader.version = 2;
  of_another_leader.draft.contributors = {contribution(kSelf)};
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(of_another_leader)));
  EXPECT_THAT(unfit(), IsEmpty());
}

TEST_F(NormCap, is_of_the_gradient_per_sample_where_others_send_their_sums_too) {
  Plan plan = plan_of_two();
  plan.draft.contributors[1].samples = 2;
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan)));
  EXPECT_TRUE(reduction.on_scatter(kOther, scatter(0, 7))) << "9.9 over two samples";
  EXPECT_THAT(why(reduction.on_scatter(kOther, scatter(1, 8))), HasSubstr("beyond the cap 5"));
}

TEST_F(NormCap, judges_what_came_before_its_plan_once_the_plan_says_over_how_many_samples_it_is) {
  Plan plan = plan_of_two();
  plan.draft.contributors[1].samples = 2;
  reduction.contribute(0, {ones}, 1);
  EXPECT_TRUE(reduction.on_scatter(kOther, scatter(0, 7)));
  EXPECT_TRUE(reduction.on_scatter(kOther, scatter(1, 8)));
  EXPECT_THAT(unfit(), IsEmpty());
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan)));
  EXPECT_THAT(pull(kThird), IsEmpty()) << "no segment of it is in a mean";
  EXPECT_THAT(unfit(), ElementsAre(::testing::EndsWith("of 2")));
}

TEST_F(NormCap, calls_infinity_not_finite) {
  ones[4] = std::numeric_limits<float>::infinity();
  reduction.contribute(0, {ones}, 1);
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  EXPECT_THAT(pull(kOther), IsEmpty());
  EXPECT_THAT(unfit(), ElementsAre("not finite 1"));
}

// Invariant I5 of the design: arrival decides neither whether a contribution counts nor with which weight.
TEST_F(ReductionTest, takes_weights_from_the_plan_and_nothing_from_slots_that_it_does_not_name) {
  Plan plan = plan_of_two();
  plan.draft.contributors = {contribution(kSelf, 1), contribution(kOther, 3)};
  reduction.contribute(0, {ones}, 1);
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan)));
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(0, 15)));
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(0, 1000, 1)));
  ASSERT_TRUE(reduction.on_scatter(kThird, scatter(0, 1000)));
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(1, 15)));
  ASSERT_TRUE(reduction.on_gather(kOther, gather(plan, 2, 4)));
  ASSERT_TRUE(reduction.on_gather(kOther, gather(plan, 3, 4)));
  ASSERT_TRUE(reduction.complete());
  EXPECT_THAT(mean_of(reduction), ::testing::Each(4.0F));  // (1 + 15) / 4
}

TEST_F(ReductionTest, is_left_as_it_was_by_all_that_it_refuses) {
  reduction.contribute(0, {ones}, 1);
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  const auto refused = [&](PeerId from, Scatter piece, auto&& damage) {
    damage(piece);
    return !reduction.on_scatter(from, piece);
  };
  for (const Round round : {Round{0}, kRound - 1, kRound + 1}) {
    EXPECT_TRUE(refused(kOther, scatter(0, 9), [&](Scatter& s) { s.step.round = round; })) << round;
    wire::Gather late = gather(plan_of_two(), 2, 9);
    late.step.round = round;
    EXPECT_FALSE(reduction.on_gather(kOther, late)) << round;
  }
  EXPECT_TRUE(refused(kOther, scatter(0, 9), [](Scatter& s) { s.payload = {}; }));
  EXPECT_TRUE(refused(kOther, scatter(0, 9), [](Scatter& s) { s.payload = encoded({1}); }));
  EXPECT_TRUE(refused(kOther, scatter(0, 9), [](Scatter& s) { s.slot = UINT32_MAX; }));
  EXPECT_TRUE(refused(kOther, scatter(0, 9), [](Scatter& s) { s.segment = UINT64_MAX; }));
  EXPECT_TRUE(refused(kSelf, scatter(0, 9), [](Scatter&) {}));
  EXPECT_TRUE(refused(kOther, scatter(0, std::nanf("")), [](Scatter&) {}));
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(0, 3)));
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(1, 3)));
  EXPECT_TRUE(refused(kOther, scatter(1, 9), [](Scatter&) {})) << "sent twice";
  ASSERT_TRUE(reduction.on_gather(kOther, gather(plan_of_two(), 2, 2)));
  ASSERT_TRUE(reduction.on_gather(kOther, gather(plan_of_two(), 3, 2)));
  ASSERT_TRUE(reduction.complete());
  EXPECT_THAT(mean_of(reduction), ::testing::Each(2.0F));
}

TEST_F(ReductionTest, refuses_plans_that_are_old_or_malformed) {
  EXPECT_FALSE(reduction.complete());
  const auto refused = [&](auto&& damage) {
    Plan plan = plan_of_two(9);
    damage(plan);
    return !reduction.adopt(swarm::shared_plan(plan));
  };
  EXPECT_TRUE(refused([](Plan& p) { p.shares.pop_back(); }));
  EXPECT_TRUE(refused([](Plan& p) { p.shares[1].count = 3; }));
  EXPECT_TRUE(refused([](Plan& p) { p.shares[1].owner = kStranger; })) << "an owner that gets no mean";
  EXPECT_TRUE(refused([](Plan& p) { p.draft.round = 6; }));
  EXPECT_TRUE(refused([](Plan& p) { p.draft.contributors.clear(); }));
  EXPECT_TRUE(refused([](Plan& p) { p.draft.contributors[0].samples = 0; }));
  EXPECT_TRUE(refused([](Plan& p) { p.draft.contributors[0].samples = UINT64_MAX; }));
  EXPECT_TRUE(refused([](Plan& p) { p.draft.contributors[0].slot = wire::kMostSlots; }));
  EXPECT_TRUE(refused([](Plan& p) { p.draft.contributors[1] = p.draft.contributors[0]; }));
  EXPECT_TRUE(refused([](Plan& p) { p.draft.contributors[1].group = 1; })) << "a group of no site";
  EXPECT_TRUE(refused([](Plan& p) { p.participants.push_back(kThird); })) << "named twice";
  const std::vector<wire::Share> all = {{kOther, 0, 4}};
  EXPECT_TRUE(refused([&](Plan& p) { p.sites = {{{kSelf, kOther}, all}}; })) << "a participant at no site";
  EXPECT_TRUE(refused([&](Plan& p) { p.sites = {{{kSelf, kOther, kThird}, {{kOther, 0, 3}}}}; }));
  EXPECT_TRUE(refused([&](Plan& p) {
    p.sites = {{{kOther}, all}, {{kSelf, kThird}, all}};
  })) << "an owner that is at another site";
  EXPECT_TRUE(refused([&](Plan& p) {
    p.sites = {{{kSelf, kOther, kThird}, all}, {{kOther}, all}};
  })) << "at two sites";
  EXPECT_TRUE(refused([&](Plan& p) {
    p.sites = {{{kSelf, kOther, kThird}, all}, {{}, all}};
  })) << "shares of a site without members";
  EXPECT_FALSE(reduction.plan());
  Plan newer = plan_of_two(1);
  newer.ballot = 1;
  EXPECT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two(2))));
  EXPECT_FALSE(reduction.adopt(swarm::shared_plan(plan_of_two(2))));
  EXPECT_FALSE(reduction.adopt(swarm::shared_plan(plan_of_two(1))));
  EXPECT_TRUE(reduction.adopt(swarm::shared_plan(newer)));
  EXPECT_FALSE(reduction.adopt(swarm::shared_plan(plan_of_two(3))));
  EXPECT_EQ(*reduction.plan(), newer);
}

TEST_F(ReductionTest, sends_no_slot_whose_samples_the_plan_has_wrong) {
  reduction.contribute(0, {ones}, 2);
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two())));
  EXPECT_THAT(pull(kOther), IsEmpty());
  EXPECT_FALSE(reduction.scattered());
}

TEST_F(ReductionTest, sends_the_values_themselves_in_fp32_and_keeps_their_owner_until_the_message_is_gone) {
  const auto owner = std::make_shared<std::vector<float>>(kGeometry.length, 1.0F);  // owners: as below
  std::optional<wire::Message> under_way;
  {
    Reduction other({.self = kSelf, .step = {kRound}, .geometry = kGeometry});
    other.contribute(0, {*owner, owner}, 2);
    ASSERT_TRUE(other.adopt(swarm::shared_plan(plan_for_two_samples())));
    under_way = other.next_bulk(kOther);
  }
  const auto piece = std::get<Scatter>(*under_way).payload.bytes();
  EXPECT_EQ(static_cast<const void*>(piece.data()), owner->data() + kGeometry.first(2));
  EXPECT_EQ(owner.use_count(), 2);
  under_way.reset();
  EXPECT_EQ(owner.use_count(), 1);
}

TEST_F(ReductionTest, hands_everything_again_to_a_participant_that_was_away) {
  reduction.contribute(0, {ones}, 1);
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two(1))));
  ASSERT_TRUE(reduction.on_scatter(kOther, scatter(0)));
  EXPECT_THAT(pull(kOther), ElementsAre("scatter 2", "scatter 3", "gather 0"));
  EXPECT_THAT(pull(kThird), ElementsAre("gather 0"));
  Plan without = plan_of_two(2);
  without.shares = {{kSelf, 0, 4}};
  without.participants = {kSelf, kThird};
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(without)));
  EXPECT_THAT(pull(kOther), IsEmpty());
  reduction.take_wakeups();
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan_of_two(3))));
  EXPECT_THAT(reduction.take_wakeups(), ElementsAre(kOther));
  EXPECT_THAT(pull(kOther), ElementsAre("scatter 2", "scatter 3", "gather 0"));
  EXPECT_THAT(pull(kThird), IsEmpty());
}

TEST_F(ReductionTest, a_contributor_that_gets_no_mean_is_owed_nothing) {
  Plan plan = plan_of_two();
  plan.shares = {{kOther, 0, 4}};
  plan.participants = {kOther, kThird};
  reduction.contribute(0, {ones}, 1);
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan)));
  EXPECT_THAT(reduction.owing(), IsEmpty());
  EXPECT_THAT(pull(kOther), ElementsAre("scatter 0", "scatter 1", "scatter 2", "scatter 3"));
  EXPECT_TRUE(reduction.scattered());
}

TEST(ReductionAlone, adds_the_residual_to_what_it_contributes) {
  const std::vector<float> sum(kGeometry.length, 3), residual(kGeometry.length, 0.5F);
  Plan plan = plan_for_two_samples();
  plan.draft.contributors = {contribution(kSelf, 2), contribution(kSelf, 2, 1)};
  plan.shares = {{kSelf, 0, 4}};
  plan.participants = {kSelf};
  Reduction reduction({.self = kSelf, .step = {kRound}, .geometry = kGeometry});
  reduction.contribute(0, {sum}, 2, residual);
  reduction.contribute(1, {sum}, 2);
  ASSERT_TRUE(reduction.adopt(swarm::shared_plan(plan)));
  ASSERT_TRUE(reduction.complete());
  EXPECT_THAT(mean_of(reduction), ::testing::Each(0.5F * 1.75F + 0.5F * 1.5F));
  EXPECT_TRUE(reduction.made(contribution(kSelf, 2)));
  EXPECT_FALSE(reduction.made(contribution(kSelf, 3))) << "of other samples";
  EXPECT_FALSE(reduction.made(contribution(kSelf, 2, 2)));
  EXPECT_FALSE(reduction.made(contribution(kOther, 2)));
}

}  // namespace
}  // namespace tw::average
