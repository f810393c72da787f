// SPDX-License-Identifier: Apache-2.0
#include "launch/restarts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/test_deployment.h"

namespace tw::launch {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class Watched {
 public:
  std::vector<std::uint32_t> after(Duration time, PeerState state) {
    now_ += time;
    return restarts_.step(now_, {{.number = 3, .state = state}});
  }

 private:
  Instant now_{1h};
  Restarts restarts_;
};

TEST(Restarts, a_peer_that_left_on_a_notice_comes_back_at_once) {
  Watched peer;
  EXPECT_THAT(peer.after(0s, PeerState::running), IsEmpty());
  EXPECT_THAT(peer.after(10s, PeerState::left), ElementsAre(3));
}

TEST(Restarts, one_that_fails_comes_back_later_each_time) {
  Watched peer;
  Duration waited = 0s;
  for (const Duration wait : {5s, 5s, 10s, 20s, 40s}) {
    EXPECT_THAT(peer.after(1s, PeerState::failed), IsEmpty());
    EXPECT_THAT(peer.after(wait - 1s, PeerState::failed), IsEmpty()) << to_seconds(wait);
    EXPECT_THAT(peer.after(1s, PeerState::failed), ElementsAre(3)) << to_seconds(wait);
    EXPECT_THAT(peer.after(1s, PeerState::running), IsEmpty());
    waited += wait;
  }
  EXPECT_LT(waited, 5min);
}

TEST(Restarts, one_that_needs_a_person_stays_away) {
  Restarts restarts;
  const PeerReport lost{.number = 3, .state = PeerState::failed, .exit_code = kNeedsPerson};
  EXPECT_THAT(restarts.step(Instant{1h}, {lost}), IsEmpty());
  EXPECT_THAT(restarts.step(Instant{9h}, {lost}), IsEmpty());
}

TEST(Restarts, the_wait_has_an_end_and_is_forgotten_after_a_good_time) {
  Watched peer;
  for (int times = 0; times < 12; ++times) {
    peer.after(1s, PeerState::failed);
    EXPECT_THAT(peer.after(10min, PeerState::failed), ElementsAre(3));
    peer.after(1s, PeerState::running);
  }
  peer.after(10min, PeerState::running);
  EXPECT_THAT(peer.after(1s, PeerState::failed), IsEmpty());
  EXPECT_THAT(peer.after(5s, PeerState::failed), ElementsAre(3));
}

TEST(Restarts, nobody_is_started_twice) {
  for (const PeerState state :
       {PeerState::unknown, PeerState::waiting, PeerState::running, PeerState::leaving, PeerState::done}) {
    Watched peer;
    peer.after(1s, state);
    EXPECT_THAT(peer.after(1h, state), IsEmpty()) << to_string(state);
  }
}

PeerReport ended(std::uint32_t number, int exit_code) {
  return {.number = number, .state = state_after(exit_code), .exit_code = exit_code};
}

TEST(RunEnd, is_when_no_peer_lives_and_none_comes_back) {
  EXPECT_EQ(end_of({}), RunEnd::none);
  EXPECT_EQ(end_of({ended(1, 0), ended(2, 1), ended(3, 75)}), RunEnd::complete);
  EXPECT_EQ(end_of({ended(1, 0), {.number = 2, .state = PeerState::unknown}}), RunEnd::none);
  EXPECT_EQ(end_of({ended(1, 1), ended(2, 75)}), RunEnd::none) << "they come back";
  EXPECT_EQ(end_of({ended(1, 2), ended(2, 75)}), RunEnd::none);
}

TEST(RunEnd, is_told_where_a_person_has_to_look) {
  EXPECT_EQ(end_of({ended(1, 2), ended(2, 2)}), RunEnd::needs_person);
  EXPECT_EQ(end_of({ended(1, 0), ended(2, 2), ended(3, 1)}), RunEnd::needs_person);
}

TEST(Founder, that_needs_a_person_gives_its_part_to_the_first_other_one_that_was_started) {
  Deployment deployment = three_peers();
  deployment.founder = 1;
  const auto founder_after = [&](std::vector<PeerReport> reports) {
    return next_founder(deployment, coming_peers(deployment.peers, reports));
  };
  EXPECT_EQ(founder_after({ended(1, 75), ended(2, 2)}), 1U) << "it comes back";
  EXPECT_EQ(founder_after({ended(1, 2), ended(2, 75)}), 2U);
  EXPECT_EQ(founder_after({ended(1, 2), ended(2, 2)}), 3U);
  deployment.peers[1].untried = true;
  EXPECT_EQ(founder_after({ended(1, 2)}), 3U) << "a new peer has no checkpoint";
  deployment.founder = 7;
  EXPECT_EQ(founder_after({ended(1, 75)}), 1U) << "that of an earlier plan is gone";
  for (PeerJob& peer : deployment.peers) peer.untried = true;
  EXPECT_EQ(founder_after({}), 7U) << "nobody has the state";
}

TEST(Anchors, the_last_one_is_missed_and_no_other) {
  Deployment deployment = three_peers();
  const auto goes = [&](PeerState first, PeerState second, PeerState third) {
    return last_anchor_that_goes(
        deployment,
        {{.number = 1, .state = first}, {.number = 2, .state = second}, {.number = 3, .state = third}});
  };
  using enum PeerState;
  EXPECT_EQ(goes(running, leaving, running), 0U) << "no anchor";
  EXPECT_EQ(goes(leaving, running, running), 1U);
  deployment.peers[2].anchor = true;
  EXPECT_EQ(goes(leaving, running, running), 0U);
  EXPECT_EQ(goes(leaving, running, waiting), 0U) << "the other one is on its way";
  EXPECT_EQ(goes(leaving, running, failed), 1U);
}

}  // namespace
}  // namespace tw::launch
