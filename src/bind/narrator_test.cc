// SPDX-License-Identifier: Apache-2.0
#include "bind/narrator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tw::bind {
namespace {

using namespace std::chrono_literals;
using world::Event;
using world::Phase;

Event round_at(Round round, Duration after) {
  return {.at = Instant{} + 1h + after, .round = round, .fact = event::Commit{}};
}

Event lost_at(Round round, Duration after) {
  return {.at = Instant{} + 1h + after, .round = round, .peer = PeerId{7}, .fact = event::Lost{}};
}

TEST(Narrator, writes_lines_one_after_the_other_where_nobody_can_overwrite_them) {
  Narrator narrator({});
  narrator.say("listening on 127.0.0.1:7000");
  narrator.take(round_at(1, 0s));
  narrator.take(lost_at(1, 1s));
  narrator.take(round_at(2, 3s));
  EXPECT_EQ(narrator.take_text(),
            "listening on 127.0.0.1:7000\nround 1\nround 1  lost peer 7\nround 2  0 samples/s\n");
  EXPECT_EQ(narrator.take_text(true), "");
}

TEST(Narrator, goes_on_where_the_run_turns_out_to_end_with_another_round) {
  Narrator narrator({.rounds = 9});
  narrator.take(round_at(1, 0s));
  narrator.ends_with(5);
  narrator.take(round_at(2, 1s));
  narrator.take(round_at(3, 3s));
  EXPECT_EQ(narrator.take_text(), "round 1/9\nround 3/5  0 samples/s\n");
}

TEST(Narrator, writes_the_line_about_rounds_in_place_on_a_terminal) {
  Narrator narrator({.terminal = true, .rounds = 2000, .usd_per_h = 3.6});
  narrator.take(round_at(999, 0s));
  EXPECT_EQ(narrator.take_text(), "\rround 999/2000  this peer $0.00");
  narrator.take(round_at(1000, 1000s));
  narrator.take(round_at(1001, 2000s));
  EXPECT_EQ(narrator.take_text(), "\rround 1001/2000  0 samples/s  this peer $2.00") << "only the newest";
  narrator.take(lost_at(1001, 2001s));
  EXPECT_EQ(narrator.take_text(), "\nround 1001  lost peer 7\n");
  narrator.take(round_at(1002, 3000s));
  EXPECT_THAT(narrator.take_text(true), ::testing::EndsWith("$3.00\n"));
}

monitor::LogEntry entry_at(std::uint64_t writer, Duration after, Event event) {
  event.at = Instant{} + 1h + after;
  return {
      .writer = PeerId{writer}, .unix_nanos = event.at.time_since_epoch().count(), .event = std::move(event)};
}

/// The line about a round after an hour of two peers with these prices.
std::string line_of_two(std::optional<double> own, std::optional<double> other) {
  monitor::Journal journal;
  journal.take(entry_at(1, 0s, {.fact = event::Start{.usd_per_h = own}}));
  journal.take(entry_at(2, 0s, {.fact = event::Start{.usd_per_h = other}}));
  for (const std::uint64_t peer : {1, 2}) journal.take(entry_at(peer, 1h, {.fact = event::Commit{}}));
  Narrator narrator({.usd_per_h = own});
  narrator.take(entry_at(1, 0s, {.fact = event::Start{}}).event);
  narrator.take(round_at(1, 1h), &journal);
  return narrator.take_text();
}

TEST(Narrator, tells_the_dollars_of_the_run_or_whose_they_are) {
  EXPECT_EQ(line_of_two(3.6, 7.2), "round 1  $10.80\n");
  EXPECT_EQ(line_of_two(3.6, {}), "round 1  this peer $3.60\n");
  EXPECT_EQ(line_of_two({}, 7.2), "round 1  $7.20 for 1 of 2 peers\n");
  EXPECT_EQ(line_of_two({}, {}), "round 1\n");
}

TEST(Narrator, that_is_off_keeps_nothing) {
  Narrator narrator({.on = false});
  narrator.say("listening");
  narrator.take(round_at(1, 0s));
  EXPECT_EQ(narrator.take_text(true), "");
}

TEST(Narrator, insists_unless_it_is_to_be_silent) {
  Narrator off({.on = false}), silent({.on = false, .silent = true});
  off.insist("the run is complete");
  silent.insist("the run is complete");
  EXPECT_EQ(off.take_text(), "the run is complete\n");
  EXPECT_EQ(silent.take_text(), "");
}

TEST(Narrator, announces_an_address_whatever_is_off) {
  Narrator silent({.on = false, .silent = true});
  silent.announce("watch: http://127.0.0.1:8080/");
  EXPECT_EQ(silent.take_text(), "watch: http://127.0.0.1:8080/\n");
}

}  // namespace
}  // namespace tw::bind
