// SPDX-License-Identifier: Apache-2.0
#include "launch/local/script.h"

#include <gtest/gtest.h>

namespace tw::launch {
namespace {

using world::Phase;
using namespace std::chrono_literals;

using Kills = std::vector<std::pair<PeerId, Round>>;

bool says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

TEST(Kill, names_a_peer_or_the_leader_and_a_round) {
  EXPECT_EQ(parse_kill("2@10").value(), (Kill{.victim = PeerId{2}, .round = 10}));
  EXPECT_EQ(parse_kill("leader@3").value(), (Kill{.victim = {}, .round = 3}));
  for (const char* text : {"2@10", "leader@3"}) EXPECT_EQ(to_string(parse_kill(text).value()), text);
}

TEST(Kill, that_is_wrong_shows_a_right_one) {
  const std::pair<const char*, const char*> cases[] = {
      {"2", "for example --kill 2@1"}, {"2@", "for example --kill 2@1"},
      {"2@0", "rounds count from 1"},  {"leader", "--kill leader@1"},
      {"0@3", "peers count from 1"},   {"ledaer@3", "did you mean \"leader\"?"},
      {"@3", "expected PEER@ROUND"},   {"2@3@4", "expected PEER@ROUND"},
      {"x@y", "expected PEER@ROUND"},  {"2@-1", "expected PEER@ROUND"},
  };
  for (const auto& [text, expected] : cases) {
    const auto kill = parse_kill(text);
    ASSERT_FALSE(kill) << text;
    EXPECT_TRUE(says(kill.error().message, expected)) << kill.error().message;
    EXPECT_TRUE(says(kill.error().message, std::string("--kill ") + text)) << kill.error().message;
  }
}

TEST(Stop, has_a_time) {
  EXPECT_EQ(parse_stop("2@10").value(), (Stop{.victim = PeerId{2}, .round = 10, .lasts = 10s}));
  EXPECT_EQ(parse_stop("leader@3:0.5").value(), (Stop{.victim = {}, .round = 3, .lasts = 500ms}));
  for (const char* text : {"2@10", "leader@3:0.5"}) EXPECT_EQ(to_string(parse_stop(text).value()), text);
  for (const char* text : {"2@3:", "2@3:x", "2@3:0", "2@3:-1", "2@3:1e9", "2@3:5:5"}) {
    const auto stop = parse_stop(text);
    ASSERT_FALSE(stop) << text;
    EXPECT_TRUE(says(stop.error().message, "such as 2@3:10")) << stop.error().message;
  }
  EXPECT_TRUE(says(parse_stop("2@0:5").error().message, "--stop 2@0:5"));
}

class ScriptStory : public testing::Test {
 protected:
  void event(std::uint64_t writer, Duration at, Phase phase, Round round, std::optional<double> calc_s = {}) {
    monitor::LogEntry entry{.writer = PeerId{writer}, .unix_nanos = 0, .event = {}};
    entry.event = {.at = Instant(at), .round = round, .fact = world::fact_of(phase)};
    if (calc_s) entry.event.fact = event::Call{.calc_s = calc_s};
    script.note(entry);
  }

  Kills kills(Duration at) { return script.step(Instant(at)).kills; }

  Script script{{Kill{.victim = PeerId{2}, .round = 3}}, {}};
};

TEST_F(ScriptStory, kills_half_an_accumulation_after_the_victim_began_the_round) {
  event(1, 1s, Phase::call, 1, 0.4);
  event(1, 2s, Phase::call, 2, 0.6);
  event(2, 2s, Phase::call, 2, 5.0);  // a slow start of one does not move the middle
  event(2, 3s, Phase::accumulate, 3);
  EXPECT_EQ(kills(3s + 299ms), Kills{});
  EXPECT_EQ(kills(3s + 300ms), (Kills{{PeerId{2}, 3}}));
  EXPECT_EQ(kills(4s), Kills{}) << "once";
  EXPECT_TRUE(script.pending().empty());
}

TEST_F(ScriptStory, stops_its_victim_as_it_kills) {
  script = Script({}, {}, {Stop{.victim = PeerId{2}, .round = 3, .lasts = 4s}});
  event(1, 1s, Phase::call, 1, 0.5);
  event(2, 3s, Phase::accumulate, 3);
  EXPECT_TRUE(script.step(Instant(3s + 249ms)).stops.empty());
  EXPECT_EQ(script.pending(), std::vector<std::string>{"--stop 2@3:4"});
  EXPECT_EQ(script.step(Instant(3s + 250ms)).stops,
            std::vector<Stop>{(Stop{.victim = PeerId{2}, .round = 3, .lasts = 4s})});
  EXPECT_TRUE(script.is_over());
}

TEST_F(ScriptStory, waits_for_the_victim_not_for_the_others) {
  event(1, 3s, Phase::accumulate, 3);
  event(2, 2s, Phase::accumulate, 2);
  EXPECT_EQ(kills(10s), Kills{});
  EXPECT_EQ(script.pending(), std::vector<std::string>{"--kill 2@3"});
}

TEST_F(ScriptStory, kills_late_rather_than_never_when_the_round_was_over_before_it_was_seen) {
  event(2, 3s, Phase::accumulate, 5);
  event(2, 3s, Phase::call, 4, 10.0);
  EXPECT_EQ(kills(3s), (Kills{{PeerId{2}, 5}}));
}

TEST_F(ScriptStory, kills_nobody_who_has_ended) {
  event(2, 3s, Phase::accumulate, 3);
  script.note_end(PeerId{2});
  EXPECT_EQ(kills(10s), Kills{});
}

TEST_F(ScriptStory, finds_the_leader_of_the_round) {
  script = Script({Kill{.victim = {}, .round = 3}}, {});
  event(1, 1s, Phase::lead, 1);
  event(1, 2s, Phase::accumulate, 2);
  event(2, 3s, Phase::lead, 3);
  event(1, 3s, Phase::accumulate, 3);
  EXPECT_EQ(kills(3s), Kills{}) << "the leader has not begun the round";
  event(2, 3s, Phase::accumulate, 3);
  EXPECT_EQ(kills(3s), (Kills{{PeerId{2}, 3}}));
}

TEST_F(ScriptStory, starts_a_peer_when_anybody_begins_the_round) {
  script = Script({}, {2, 4, 4});
  event(1, 1s, Phase::accumulate, 1);
  EXPECT_TRUE(script.step(Instant(1s)).joins.empty());
  event(3, 2s, Phase::accumulate, 2);
  EXPECT_EQ(script.step(Instant(2s)).joins, std::vector<Round>{2});
  EXPECT_EQ(script.pending(), (std::vector<std::string>{"--join 4", "--join 4"}));
  event(3, 4s, Phase::accumulate, 4);
  EXPECT_EQ(script.step(Instant(4s)).joins, (std::vector<Round>{4, 4}));
}

}  // namespace
}  // namespace tw::launch
