// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/early_results.h"

#include <gtest/gtest.h>

namespace tw::average {
namespace {

constexpr PeerId kNamed{1}, kUnnamed{2};

wire::Gather result(std::uint64_t set, std::uint64_t segment, bool of_site) {
  wire::Gather gather{.step = {1}, .ballot = 1, .version = 1, .set = set, .segment = segment};
  gather.payload = Blob(std::vector<std::byte>(4));
  gather.of_site = of_site;
  return gather;
}

wire::Plan plan_with(PeerId participant) {
  wire::Plan plan;
  plan.participants = {participant};
  return plan;
}

TEST(EarlyResults, count_once_a_plan_names_their_sender) {
  EarlyResults early(3);
  EXPECT_TRUE(early.put(kNamed, result(7, 1, false)));
  EXPECT_TRUE(early.put(kNamed, result(8, 2, true)));
  EXPECT_FALSE(early.put(kNamed, result(8, 2, true))) << "sent twice";
  EXPECT_TRUE(early.means_of(7).empty());
  EXPECT_TRUE(early.site_sum(8, 2).empty());
  early.know(plan_with(kNamed));
  ASSERT_EQ(early.means_of(7).size(), 1U);
  EXPECT_EQ(early.means_of(7)[0].from, kNamed);
  EXPECT_EQ(early.means_of(7)[0].segments[1].size(), 4U);
  EXPECT_TRUE(early.means_of(8).empty()) << "that is a site_sum";
  EXPECT_EQ(early.site_sum(8, 2).size(), 4U);
  EXPECT_TRUE(early.site_sum(7, 1).empty()) << "that is a mean";
}

TEST(EarlyResults, of_a_plan_replace_those_of_an_earlier_one_and_never_those_of_a_later_one) {
  const auto of_version = [](std::uint64_t version, std::uint64_t set) {
    wire::Gather gather = result(set, 1, false);
    gather.version = version;
    return gather;
  };
  EarlyResults early(3);
  early.know(plan_with(kNamed));
  early.put(kNamed, of_version(2, 7));
  EXPECT_TRUE(early.put(kNamed, of_version(1, 6))) << "late, but no fault of its sender";
  EXPECT_EQ(early.means_of(7).size(), 1U);
  EXPECT_TRUE(early.means_of(6).empty());
  early.put(kNamed, of_version(3, 8));
  EXPECT_EQ(early.means_of(8).size(), 1U);
  EXPECT_TRUE(early.means_of(7).empty());
}

TEST(EarlyResults, of_a_stranger_are_dropped_with_its_link) {
  EarlyResults early(3);
  early.put(kUnnamed, result(7, 1, false));
  early.put(kUnnamed, result(7, 1, true));
  EXPECT_GT(early.held_bytes(), 0U);
  early.drop(kUnnamed);
  EXPECT_EQ(early.held_bytes(), 0U);
  early.know(plan_with(kNamed));
  EXPECT_DEATH(early.drop(kNamed), "knows");
}

}  // namespace
}  // namespace tw::average
