// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "sim/scenarios/test_world.h"

/// Programs that are busy: their engines vote, reduce and serve meanwhile, so no other peer stands.
namespace tw::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPause = 10s;
/// Time until the others know that a program is busy which does not say so; docs/python.md promises it.
constexpr Duration kNoticed = 1500ms;
constexpr Duration kRound = 400ms;  // of one peer alone
constexpr Duration kBusyFrom = 5s;

/// Some peers with rounds of about 0.2 s, until 40 s have passed; the time that each stood between two
/// updates.
class BusyStory {
 public:
  explicit BusyStory(int peers) : world_(small_world({{"here", peers, 300, kGbit, kGbit}}, 100'000)) {
    for (int i = 0; i < peers; ++i) add();
    world_.watch([this](PeerId peer, const world::Event& event) {
      if (event.phase() == world::Phase::apply || event.phase() == world::Phase::restore) saw_update(peer);
    });
    run_for(kBusyFrom);
  }

  World& world() { return world_; }

  PeerId peer(std::size_t index) const { return peers_.at(index); }

  PeerId add() {
    peers_.push_back(world_.add_peer({0, 300, {kGbit, kGbit}}));
    return peers_.back();
  }

  void run_for(Duration time) { world_.run_until(world_.now() + time); }

  /// Between two updates of this peer, the present one included.
  Duration longest_stand(PeerId peer) { return std::max(stood_[peer], world_.now() - updated_at_[peer]); }

  Round round_of(PeerId peer) const { return world_.view(peer).round; }

  ~BusyStory() {
    for (const Violation& violation : world_.referee().violations())
      ADD_FAILURE() << violation.checker << ": " << violation.message;
  }

 private:
  static constexpr double kGbit = 1000 * kMbit;

  void saw_update(PeerId peer) {
    const auto [last, first] = updated_at_.try_emplace(peer, world_.now());
    if (!first) stood_[peer] = std::max(stood_[peer], world_.now() - last->second);
    last->second = world_.now();
  }

  World world_;
  std::vector<PeerId> peers_;
  std::map<PeerId, Instant> updated_at_;
  std::map<PeerId, Duration> stood_;
};

TEST(BusyStory, others_go_on_while_the_program_of_a_peer_is_busy) {
  for (const int peers : {2, 3}) {
    for (std::size_t busy = 0; busy < static_cast<std::size_t>(peers); ++busy) {
      for (const bool announced : {true, false}) {
        for (const Duration later : {0ms, 60ms, 130ms}) {
          SCOPED_TRACE(fmt::format("{} peers, busy: {}, announced: {}, {} ms later", peers, busy, announced,
                                   later / 1ms));
          BusyStory story(peers);
          story.run_for(later);
          story.world().send_away(story.peer(busy), kPause, announced);
          story.run_for(kPause + 5s);
          for (std::size_t i = 0; i < static_cast<std::size_t>(peers); ++i) {
            const PeerId peer = story.peer(i);
            if (i != busy) {
              EXPECT_LE(to_seconds(story.longest_stand(peer)),
                        to_seconds((announced ? 0s : kNoticed) + kRound))
                  << "peer " << peer.value;
            }
            EXPECT_LE(story.round_of(story.peer(0)), story.round_of(peer) + 1) << "all take part again";
          }
        }
      }
    }
  }
}

TEST(BusyStory, a_peer_joins_while_the_program_of_a_member_is_busy) {
  for (const bool announced : {true, false}) {
    BusyStory story(2);
    story.world().send_away(story.peer(0), kPause, announced);
    story.run_for(1s);
    const PeerId joiner = story.add();
    story.run_for(4s);
    EXPECT_LE(to_seconds(story.longest_stand(story.peer(1))), to_seconds(kNoticed + kRound));
    EXPECT_LE(story.round_of(story.peer(1)), story.round_of(joiner) + 1);
  }
}

TEST(BusyStory, nobody_waits_for_a_joiner_whose_program_is_busy) {
  for (const Duration after : {50ms, 150ms, 300ms, 600ms, 1200ms}) {
    for (const bool announced : {true, false}) {
      SCOPED_TRACE(std::to_string(after / 1ms) + (announced ? " ms, announced" : " ms"));
      BusyStory story(2);
      const PeerId joiner = story.add();
      story.run_for(after);
      story.world().send_away(joiner, kPause, announced);
      story.run_for(kPause);
      for (const std::size_t i : {0, 1})
        EXPECT_LE(to_seconds(story.longest_stand(story.peer(i))), to_seconds(kNoticed + kRound));
      story.run_for(5s);
      EXPECT_LE(story.round_of(story.peer(0)), story.round_of(joiner) + 1);
    }
  }
}

TEST(BusyStory, nobody_waits_for_a_busy_peer_that_leaves) {
  for (const int peers : {2, 3}) {
    for (const Duration after : {0ms, 100ms, 600ms, 3000ms}) {
      SCOPED_TRACE(std::to_string(peers) + " peers, " + std::to_string(after / 1ms) + " ms");
      BusyStory story(peers);
      story.world().send_away(story.peer(0), kPause, true);
      story.run_for(after);
      story.world().leave(story.peer(0), 5s);
      story.run_for(kPause);
      EXPECT_FALSE(story.world().lives(story.peer(0)));
      EXPECT_LE(to_seconds(story.longest_stand(story.peer(1))), to_seconds(kNoticed + kRound));
    }
  }
}

TEST(BusyStory, a_lone_peer_says_that_its_program_is_busy) {
  for (const bool announced : {true, false}) {
    BusyStory story(1);
    story.world().send_away(story.peer(0), kPause, announced);
    story.run_for(kPause - 1s);
    EXPECT_EQ(story.world().view(story.peer(0)).waiting.kind, swarm::Wait::Kind::away) << announced;
  }
}

TEST(BusyStory, the_first_that_is_back_goes_on_where_all_were_busy) {
  for (const int peers : {2, 3}) {
    for (std::size_t first = 0; first < static_cast<std::size_t>(peers); ++first) {
      SCOPED_TRACE(std::to_string(peers) + " peers, first back: " + std::to_string(first));
      BusyStory story(peers);
      for (std::size_t i = 0; i < static_cast<std::size_t>(peers); ++i)
        story.world().send_away(story.peer(i), i == first ? 2s : kPause, true);
      story.run_for(2s);
      const Round then = story.round_of(story.peer(first));
      story.run_for(kPause - 3s);
      EXPECT_GT(story.round_of(story.peer(first)), then + 10);
      story.run_for(5s);
      for (std::size_t i = 0; i < static_cast<std::size_t>(peers); ++i)
        EXPECT_LE(story.round_of(story.peer(first)), story.round_of(story.peer(i)) + 1);
    }
  }
}

}  // namespace
}  // namespace tw::sim
