// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/part.h"

#include <gtest/gtest.h>

namespace tw::swarm {
namespace {

using Stay = Part::Stay;
using Outset = Part::Outset;

TEST(Part, goes_from_fresh_to_member_and_back_to_taking_state) {
  Part part(false);
  EXPECT_EQ(wire::PeerState::fresh, part.peer_state());
  EXPECT_FALSE(part.takes_part());
  part.fall_behind();
  EXPECT_EQ(wire::PeerState::syncing, part.peer_state());
  EXPECT_FALSE(part.takes_part());
  part.follow(false);
  EXPECT_EQ(wire::PeerState::ready, part.peer_state());
  EXPECT_TRUE(part.takes_part());
  EXPECT_FALSE(part.is_member());
  part.follow(true);
  EXPECT_TRUE(part.is_member());
  part.fall_behind();
  EXPECT_FALSE(part.is_member());
}

TEST(Part, leaves_as_a_member_once_and_stays_one_while_records_name_it) {
  Part part(false);
  part.follow(true);
  EXPECT_TRUE(part.leave()) << "others have to be told";
  EXPECT_EQ(wire::PeerState::leaving, part.peer_state());
  part.follow(true);
  EXPECT_EQ(wire::PeerState::leaving, part.peer_state());
  EXPECT_TRUE(part.is_member());
  part.end();
  EXPECT_FALSE(part.takes_part());
  part.follow(false);
  EXPECT_EQ(Stay::ended, part.stay());
}

TEST(Part, tells_nobody_that_it_leaves_when_it_is_no_member) {
  Part part(false);
  part.follow(false);
  EXPECT_FALSE(part.leave());
  EXPECT_TRUE(part.leaves());
  part.follow(true);
  EXPECT_EQ(wire::PeerState::leaving, part.peer_state());
}

TEST(Part, begins_nothing_before_it_may) {
  EXPECT_EQ(Outset::free, Part(false).outset());
  Part returns(true);
  EXPECT_EQ(Outset::awaits_others, returns.outset());
  returns.go_on_alone();
  EXPECT_EQ(Outset::free, returns.outset());
  Part resumes(true);
  resumes.begin_anew();
  resumes.go_on_alone();
  EXPECT_EQ(Outset::awaits_company, resumes.outset());
  resumes.decided();
  EXPECT_EQ(Outset::free, resumes.outset());
}

TEST(Part, knows_no_other_transitions) {
  Part syncing(false);
  syncing.fall_behind();
  EXPECT_DEATH(syncing.fall_behind(), "syncing");
  Part ended(false);
  ended.end();
  EXPECT_DEATH(ended.end(), "ended");
  EXPECT_DEATH(ended.leave(), "stays");
  EXPECT_DEATH(ended.fall_behind(), "ended");
  Part member(false);
  member.follow(true);
  EXPECT_DEATH(member.begin_anew(), "fresh");
}

}  // namespace
}  // namespace tw::swarm
