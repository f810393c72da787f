// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/delays.h"

#include <gtest/gtest.h>

#include "monitor/report/test_story.h"

namespace tw::monitor {
namespace {

using world::Phase;
using Cause = Delay::Cause;

/// What differs at one peer from the others. Rounds of 64 samples a peer, 1 s of work and 0.2 s of averaging.
struct Odd {
  std::uint64_t samples = 64;
  double work_s = 1, data_s = 0, late_s = 0;
  double queued_computing_s = 0, queued_averaging_s = 0, disk_computing_s = 0, disk_averaging_s = 0;
  double up_mbit_s = 100, down_mbit_s = 100;
  std::optional<PeerId> slow_to{};
};

/// Logs of four peers; the third one is odd in rounds [from, to].
class Fleet {
 public:
  explicit Fleet(Odd odd, Round from = 1, Round to = 100) : odd_(odd), from_(from), to_(to) {}

  double comm_s = 0.2, hidden_s = 0, queued_by_all_s = 0, data_by_all_s = 0;
  std::string hardware_of_odd = "8 cores";
  bool is_copied = false;     ///< the log of the odd one is there twice
  bool reads_at_call = true;  ///< the time that threads wait for a processor; else at commits alone

  Board board(Round rounds) {
    for (std::uint64_t peer = 1; peer <= 4; ++peer)
      story_.add(
          peer, 0,
          {.fact = event::Start{.hardware = peer == 3 ? hardware_of_odd : "8 cores", .usd_per_h = 0.25}});
    for (Round round = 1; round <= rounds; ++round)
      for (std::uint64_t peer = 1; peer <= 4; ++peer)
        add(peer, round, peer == 3 && from_ <= round && round <= to_ ? odd_ : Odd());
    auto logs = story_.logs();
    if (is_copied) logs.push_back(logs.at(2));
    return journal_of(logs).board();
  }

  /// The first cause and its peer.
  Delay worst(Round rounds = 20) {
    const Board found = board(rounds);
    return found.delays.empty() ? Delay() : found.delays.front();
  }

 private:
  void add(std::uint64_t peer, Round round, const Odd& odd) {
    const double begin = 2.0 * static_cast<double>(round);
    Grown& grown = grown_[peer];
    story_.add(peer, begin, {.round = round, .fact = event::Accumulate{}});
    grown.queued += odd.queued_computing_s + queued_by_all_s;
    grown.disk += odd.disk_computing_s;
    event::Call call{.use = {.disk_s = grown.disk}};
    if (reads_at_call) call.use.queued_s = grown.queued;
    story_.add(peer, begin + 1, {.round = round, .fact = std::move(call)});
    grown.queued += odd.queued_averaging_s;
    grown.disk += odd.disk_averaging_s;
    event::Commit commit{.samples = odd.samples,
                         .samples_total = 256 * round,
                         .calc_s = 1 + odd.late_s,
                         .comm_s = comm_s - odd.late_s,
                         .hidden_s = hidden_s,
                         .use = {.queued_s = grown.queued, .disk_s = grown.disk},
                         .work_s = odd.work_s,
                         .data_s = odd.data_s + data_by_all_s,
                         .bandwidth = {.up_mbit_s = odd.up_mbit_s, .down_mbit_s = odd.down_mbit_s}};
    if (odd.slow_to) commit.slow = {{*odd.slow_to, 5}};
    story_.add(peer, begin + 1 + comm_s, {.round = round, .fact = std::move(commit)});
  }

  struct Grown {
    double queued = 0, disk = 0;
  };

  Story story_;
  Odd odd_;
  Round from_, to_;
  std::map<std::uint64_t, Grown> grown_;
};

TEST(Delays, are_the_same_where_a_log_is_there_twice) {
  Fleet once({.data_s = 0.5}), twice({.data_s = 0.5});
  twice.is_copied = true;
  EXPECT_EQ(once.board(20), twice.board(20));
}

TEST(Delays, of_like_peers_are_none) {
  const Board board = Fleet(Odd()).board(20);
  EXPECT_TRUE(board.delays.empty()) << what_of(board.delays.front());
}

TEST(Delays, of_what_all_peers_have_are_none) {
  Fleet busy((Odd()));
  busy.queued_by_all_s = 0.3;
  busy.data_by_all_s = 0.3;
  EXPECT_TRUE(busy.board(20).delays.empty());
}

TEST(Delays, of_a_loader_are_the_samples_that_its_peer_would_have_done) {
  const Delay worst = Fleet({.samples = 32, .work_s = 1, .data_s = 0.5}).worst();
  EXPECT_EQ(worst.cause, Cause::loader);
  EXPECT_EQ(worst.peer, PeerId{3});
  EXPECT_NEAR(worst.round_s, 1.0 / 8, 1e-9) << "7 of 8 parts of the speed that the four could have";
  EXPECT_NEAR(worst.share, 1.0 / 16, 1e-9) << "a round takes 2 s";
  EXPECT_NEAR(*worst.usd_per_h, 1.0 / 16, 0.005)
      << "of 1 USD an hour; the machines began before the first round";
}

TEST(Delays, of_a_slow_peer_are_judged_by_others_on_its_hardware) {
  EXPECT_EQ(Fleet({.samples = 32}).worst().cause, Cause::compute);
  EXPECT_EQ(Fleet({.samples = 32}).worst().peer, PeerId{3});
  Fleet other({.samples = 32});
  other.hardware_of_odd = "2 cores";
  EXPECT_TRUE(other.board(20).delays.empty()) << "nobody else has such a machine";
}

TEST(Delays, of_a_busy_processor_are_no_slow_computing) {
  const Delay worst = Fleet({.samples = 32, .queued_computing_s = 0.5}).worst();
  EXPECT_EQ(worst.cause, Cause::core);
  EXPECT_EQ(worst.peer, PeerId{3});
}

TEST(Delays, of_a_busy_processor_are_seen_where_all_wait_for_theirs) {
  Fleet all({.samples = 48, .queued_computing_s = 0.13});
  all.queued_by_all_s = 0.6;
  const Delay worst = all.worst();
  EXPECT_EQ(worst.cause, Cause::core) << what_of(worst);
  EXPECT_EQ(worst.peer, PeerId{3});
}

TEST(Delays, of_a_busy_processor_that_is_not_clear_are_no_slow_computing) {
  Fleet all({.samples = 57, .queued_computing_s = 0.09});
  all.queued_by_all_s = 0.6;
  EXPECT_TRUE(all.board(20).delays.empty());
}

TEST(Delays, of_a_busy_processor_need_no_reading_at_the_call) {
  Fleet fleet({.samples = 32, .queued_computing_s = 0.5});
  fleet.reads_at_call = false;
  const Delay worst = fleet.worst();
  EXPECT_EQ(worst.cause, Cause::core) << what_of(worst);
  EXPECT_NEAR(worst.round_s, 0.155, 0.005) << "1.8 of 2 s are computing";
}

TEST(Delays, of_a_busy_processor_after_an_early_call_are_those_of_computing) {
  const auto delay_at = [](double call_s) {
    Story story;
    for (Round round = 1; round <= 20; ++round) {
      for (const std::uint64_t peer : {1, 2}) {
        const double begin = 2.0 * static_cast<double>(round);
        const double grown = peer == 1 ? 0.5 * static_cast<double>(round) : 0;
        story.add(peer, begin, {.round = round, .fact = event::Accumulate{}});
        story.add(peer, begin + call_s,
                  {.round = round, .fact = event::Call{.use = {.queued_s = grown - (peer == 1 ? 0.5 : 0)}}});
        story.add(peer, begin + 1.2,
                  {.round = round,
                   .fact = event::Commit{.samples = peer == 1 ? 32U : 64U,
                                         .calc_s = 1,
                                         .comm_s = 0.2,
                                         .use = {.queued_s = grown},
                                         .work_s = 1}});
      }
    }
    return journal_of(story.logs()).board().delays.at(0);
  };
  const Delay early = delay_at(0.001), late = delay_at(0.999);
  EXPECT_EQ(early.cause, Cause::core);
  EXPECT_EQ(early.peer, PeerId{1});
  EXPECT_GT(early.round_s, late.round_s) << "of an early one most of the time that passes until the commit";
}

TEST(Delays, of_a_disk_hold_up_averaging_in_full) {
  const Delay worst = Fleet({.disk_computing_s = 0.05, .disk_averaging_s = 0.15}).worst();
  EXPECT_EQ(worst.cause, Cause::disk);
  EXPECT_GT(worst.round_s, 0.15);
}

TEST(Delays, of_a_last_microbatch_count_in_full) {
  const Delay late = Fleet({.samples = 32, .late_s = 0.1}).worst(), in_time = Fleet({.samples = 32}).worst();
  EXPECT_EQ(late.cause, Cause::compute);
  EXPECT_NEAR(late.round_s, in_time.round_s + 0.1, 1e-9);
}

TEST(Delays, of_a_thin_link_are_the_difference_of_the_bounds) {
  const Delay worst = Fleet({.up_mbit_s = 20, .down_mbit_s = 20}).worst();
  EXPECT_EQ(worst.cause, Cause::link);
  EXPECT_EQ(worst.peer, PeerId{3});
  EXPECT_FALSE(worst.to);
  EXPECT_NEAR(worst.round_s, 0.2 * (1 - 1.5 / 5), 0.01) << "T* of four equal ones, and with one at a fifth";
}

TEST(Delays, of_a_pair_name_both_ends) {
  const Delay worst = Fleet({.slow_to = PeerId{1}}).worst();
  EXPECT_EQ(worst.cause, Cause::link);
  EXPECT_EQ(worst.to, PeerId{3});
  EXPECT_EQ(what_of(worst), "the link between peer 1 and peer 3");
}

TEST(Delays, that_are_hidden_cost_nothing) {
  Fleet fleet({.up_mbit_s = 20});
  fleet.hidden_s = 0.2;
  EXPECT_TRUE(fleet.board(20).delays.empty());
}

TEST(Delays, say_since_when_and_whether_they_are_over) {
  const Odd slow{.samples = 32, .work_s = 1, .data_s = 0.5};
  const double epoch = static_cast<double>(kEpochNanos) * 1e-9;
  const Delay goes_on = Fleet(slow, 20).worst(40);
  ASSERT_TRUE(goes_on.since_s);
  EXPECT_GE(*goes_on.since_s, epoch + 2 * 19);
  EXPECT_LE(*goes_on.since_s, epoch + 2 * 30) << "within the rounds of a window";
  const Delay over = Fleet(slow, 5, 12).worst(40);
  EXPECT_FALSE(over.since_s);
  EXPECT_EQ(over.round_s, 0);
  EXPECT_NEAR(over.seconds, 8 * 0.125, 1e-9) << "what it has cost stays";
}

/// With lines of 100; from each to each other one a link of this rate.
std::vector<swarm::Participant> twelve(double pair_rate) {
  std::vector<swarm::Participant> all;
  for (std::uint64_t peer = 1; peer <= 12; ++peer) {
    all.push_back({.peer = PeerId{peer}, .bandwidth = {100, 100, {}}});
    for (std::uint64_t to = 1; to <= 12; ++to)
      if (to != peer) all.back().bandwidth.slow.push_back({PeerId{to}, pair_rate});
  }
  return all;
}

TEST(Delays, of_pairs_that_hold_nothing_up_are_not_looked_for) {
  const std::vector<swarm::Participant> spare = twelve(50), thin = twelve(2);
  EXPECT_TRUE(binding_pairs(spare, swarm::best_split(spare)).empty());
  EXPECT_EQ(binding_pairs(thin, swarm::best_split(thin)).size(), kMostBindingPairs) << "of 66";
}

TEST(Delays, of_the_loader_of_a_lone_peer_are_all_that_it_waits) {
  Story story;
  story.add(1, 0, {.fact = event::Start{.usd_per_h = 1}});
  const Round rounds = 2 * Board::kMostRounds;
  for (Round round = 1; round <= rounds; ++round) {
    const double at = static_cast<double>(round);
    story.add(1, at, {.round = round, .fact = event::Accumulate{}});
    story.add(
        1, at + 0.9,
        {.round = round, .fact = event::Commit{.samples = 32, .calc_s = 1, .work_s = 1, .data_s = 0.5}});
  }
  const Board board = journal_of(story.logs()).board();
  ASSERT_EQ(board.rounds.size(), Board::kMostRounds);
  ASSERT_EQ(board.delays.size(), 1U);
  EXPECT_EQ(board.delays[0].cause, Cause::loader);
  EXPECT_NEAR(board.delays[0].share, 0.5, 1e-6);
  EXPECT_NEAR(*board.delays[0].usd_per_h, 0.5, 1e-3) << "of 1 USD an hour, however old the run is";
}

TEST(Delays, are_not_made_by_a_process_that_began_again) {
  Story story;
  for (Round round = 1; round <= 10; ++round) {
    for (std::uint64_t peer = 1; peer <= 3; ++peer) {
      const double at = static_cast<double>(round);
      const bool again = peer == 3 && round > 5;  // its counters began at 0
      if (round == 1 || (peer == 3 && round == 6)) story.add(peer, at, {.fact = event::Start{}});
      const double queued = at + (again ? 0 : 1000);
      story.add(peer, at + 0.5, {.round = round, .fact = event::Call{.use = {.queued_s = queued}}});
      story.add(
          peer, at + 0.9,
          {.round = round,
           .fact = event::Commit{.samples = 32, .calc_s = 0.5, .use = {.queued_s = queued}, .work_s = 0.5}});
    }
  }
  for (const Delay& delay : journal_of(story.logs()).board().delays) EXPECT_LT(delay.seconds, 5);
}

}  // namespace
}  // namespace tw::monitor
