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

TEST(Narrator, writes_the_line_about_rounds_in_place_on_a_terminal) {
  Narrator narrator({.terminal = true, .rounds = 2000, .usd_per_h = 3.6});
  narrator.take(round_at(999, 0s));
  EXPECT_EQ(narrator.take_text(), "\rround 999/2000  $0.00");
  narrator.take(round_at(1000, 1000s));
  narrator.take(round_at(1001, 2000s));
  EXPECT_EQ(narrator.take_text(), "\rround 1001/2000  0 samples/s  $2.00") << "only the newest";
  narrator.take(lost_at(1001, 2001s));
  EXPECT_EQ(narrator.take_text(), "\nround 1001  lost peer 7\n");
  narrator.take(round_at(1002, 3000s));
  EXPECT_THAT(narrator.take_text(true), ::testing::EndsWith("$3.00\n"));
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
