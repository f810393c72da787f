// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/own_lives.h"

#include <gmock/gmock.h>

namespace tw::cli {
namespace {

using world::Phase;

monitor::LogEntry entry(double hour, std::uint64_t writer, Phase phase, std::uint64_t about = 0) {
  monitor::LogEntry made{
      .writer = PeerId{writer}, .unix_nanos = static_cast<std::int64_t>(hour * 3600e9), .event = {}};
  made.event.fact = world::fact_of(phase);
  if (about != 0) made.event.peer = PeerId{about};
  return made;
}

std::vector<std::pair<double, bool>> lives(const std::vector<monitor::LogEntry>& entries) {
  std::vector<std::pair<double, bool>> found;
  LivesInLogs logs;
  for (const monitor::LogEntry& entry : entries) logs.take(entry);
  for (const Life& life : std::move(logs).lives())
    found.emplace_back(life.hours(), life.end == LifeEnd::taken);
  std::sort(found.begin(), found.end());
  return found;
}

using testing::ElementsAre;
using testing::Pair;

TEST(OwnLives, last_from_the_start_of_a_peer_until_others_lose_it) {
  EXPECT_THAT(lives({entry(0, 1, Phase::start), entry(1, 2, Phase::start), entry(4, 1, Phase::lost, 2),
                     entry(9, 1, Phase::commit), entry(10, 1, Phase::stop)}),
              ElementsAre(Pair(3, true), Pair(10, false)));
}

TEST(OwnLives, who_leaves_or_is_still_there_was_not_taken) {
  EXPECT_THAT(lives({entry(0, 1, Phase::start), entry(0, 2, Phase::start), entry(2, 1, Phase::leave, 2),
                     entry(5, 1, Phase::commit), entry(5, 1, Phase::join, 3), entry(8, 1, Phase::lost, 4),
                     entry(8, 1, Phase::leave, 2)}),
              ElementsAre(Pair(2, false), Pair(3, false), Pair(8, false), Pair(8, true)));
}

TEST(OwnLives, a_peer_without_a_log_lives_from_its_joining_and_a_second_loss_counts_once) {
  EXPECT_THAT(
      lives({entry(7, 3, Phase::lost, 2), entry(7.5, 1, Phase::lost, 2), entry(1, 1, Phase::join, 2)}),
      ElementsAre(Pair(6, true)));
}

TEST(OwnLives, who_leaves_after_a_notice_of_its_cloud_was_taken_and_after_sigterm_not) {
  monitor::LogEntry cloud = entry(2, 2, Phase::notice), owner = entry(2, 3, Phase::notice);
  cloud.event.fact = event::Notice{.source = "aws"};
  owner.event.fact = event::Notice{.source = "signal"};
  EXPECT_THAT(
      lives({entry(0, 1, Phase::start), entry(0, 2, Phase::start), entry(0, 3, Phase::start), cloud, owner,
             entry(2.5, 1, Phase::leave, 2), entry(3, 1, Phase::leave, 3), entry(3, 1, Phase::stop)}),
      ElementsAre(Pair(2.5, true), Pair(3, false), Pair(3, false)));
}

TEST(OwnLives, a_peer_that_nobody_saw_come_was_there_at_the_first_entry) {
  EXPECT_THAT(lives({entry(1, 1, Phase::start), entry(3, 1, Phase::lost, 2), entry(4, 1, Phase::stop)}),
              ElementsAre(Pair(2, true), Pair(3, false)));
}

}  // namespace
}  // namespace tw::cli
