// SPDX-License-Identifier: Apache-2.0
#include "swarm/leases/holdback.h"

#include <gtest/gtest.h>

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

const PeerId kJoiner{7};

struct Watch {
  Holdback holdback;
  Instant now = Instant{} + 1h;
  std::uint64_t pieces = 0;

  void tell(std::uint32_t lost_ground, wire::PeerState peer_state = wire::PeerState::syncing,
            PeerId peer = kJoiner) {
    wire::Heartbeat beat{.peer_state = peer_state};
    beat.catching_up = {lost_ground, pieces};
    holdback.heard(now, peer, beat);
    holdback.step(now);
  }

  /// The joiner gets a piece every second. True if it is waited for all the time.
  bool waits_for(Duration time) {
    for (const Instant end = now + time; now < end; now += 1s) {
      ++pieces;
      tell(2);
      if (holdback.peers().empty()) return false;
    }
    return true;
  }
};

TEST(Holdback, waits_for_a_joiner_that_lost_ground_twice_until_it_stands_at_the_head) {
  Watch watch;
  watch.tell(1);
  EXPECT_TRUE(watch.holdback.peers().empty());
  EXPECT_TRUE(watch.waits_for(60s));
  EXPECT_EQ(std::vector{kJoiner}, watch.holdback.peers());
  watch.tell(2, wire::PeerState::ready);
  EXPECT_TRUE(watch.holdback.peers().empty());
}

TEST(Holdback, waits_for_nobody_who_gets_nothing_or_is_gone) {
  Watch watch;
  watch.tell(2);
  watch.now += Holdback::kStill;
  watch.tell(3);
  EXPECT_TRUE(watch.holdback.peers().empty());
  watch.now += Holdback::kStill;
  ++watch.pieces;
  watch.tell(3);
  EXPECT_FALSE(watch.holdback.peers().empty()) << "it moves again";
  watch.holdback.on_close(kJoiner);
  watch.holdback.step(watch.now);
  EXPECT_TRUE(watch.holdback.peers().empty());
}

TEST(Holdback, waits_for_no_joiner_whose_program_is_busy) {
  Watch watch;
  const auto tell = [&](wire::Presence presence) {
    wire::Heartbeat beat{.peer_state = wire::PeerState::syncing, .presence = presence};
    beat.catching_up.lost_ground = 2;
    watch.holdback.heard(watch.now += 1s, kJoiner, beat);
    watch.holdback.step(watch.now);
    return watch.holdback.peers();
  };
  EXPECT_EQ(std::vector{kJoiner}, tell(wire::Presence::here));
  EXPECT_TRUE(tell(wire::Presence::away).empty());
  watch.now += 2s;
  EXPECT_EQ(std::vector{kJoiner}, tell(wire::Presence::here));
}

TEST(Holdback, lets_rounds_be_made_in_half_of_the_time_whatever_joiners_say) {
  Watch watch;
  EXPECT_TRUE(watch.waits_for(Holdback::kLongest));
  EXPECT_FALSE(watch.waits_for(Holdback::kLongest + 1s)) << "it had its time";
  watch.holdback.on_close(kJoiner);
  EXPECT_FALSE(watch.waits_for(1s)) << "a new link is no new time at once";
  int waited = 0;
  for (int second = 0; second < 3600; ++second) {
    watch.now += 1s;
    ++watch.pieces;
    if (second % 7 == 0) watch.holdback.on_close(kJoiner);
    watch.tell(2);
    waited += watch.holdback.peers().empty() ? 0 : 1;
  }
  EXPECT_LE(waited, 1801);
}

}  // namespace
}  // namespace tw::swarm
