// SPDX-License-Identifier: Apache-2.0
#include "sim/scenarios/trace.h"

#include <gtest/gtest.h>

#include <set>

namespace tw::sim {
namespace {

using namespace std::chrono_literals;

std::vector<Trace> traces(std::string_view text, const std::string& id = "") {
  Result<std::vector<Trace>> read = read_traces("spot.csv", text, id);
  EXPECT_TRUE(read.ok()) << read.error().message;
  return std::move(read).value();
}

std::string trace_complaint(std::string_view text, const std::string& id = "") {
  const Result<std::vector<Trace>> read = read_traces("spot.csv", text, id);
  return read.ok() ? "" : read.error().message;
}

int there_at(const std::vector<MachineLifetime>& lifetimes, Duration t) {
  return static_cast<int>(std::count_if(lifetimes.begin(), lifetimes.end(), [&](const MachineLifetime& s) {
    return s.comes <= t && t < s.goes;
  }));
}

TEST(Trace, a_row_holds_until_the_next_and_the_last_marks_the_end) {
  const std::vector<Trace> read = traces("t_seconds,available\n0,0\n10,2\n30,1\n40,1\n");
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].machines, 2);
  EXPECT_EQ(read[0].length, 40s);
  ASSERT_EQ(read[0].lifetimes.size(), 2U);
  EXPECT_EQ(there_at(read[0].lifetimes, 5s), 0);
  EXPECT_EQ(there_at(read[0].lifetimes, 29s), 2);
  EXPECT_EQ(there_at(read[0].lifetimes, 30s), 1);
  const auto taken = std::count_if(read[0].lifetimes.begin(), read[0].lifetimes.end(),
                                   [](const MachineLifetime& lifetime) { return lifetime.taken; });
  EXPECT_EQ(taken, 1) << "the other one is there at the end";
}

TEST(Trace, of_several_traces_one_is_chosen_or_all_with_a_prefix) {
  const std::string text =
      "trace_id,t_seconds,available\na-1,0,1\nb-1,0,1\na-2,0,1\na-1,5,1\nb-1,9,0\na-2,7,0\n";
  EXPECT_EQ(traces(text, "b-1").front().length, 9s);
  EXPECT_EQ(traces(text, "a-*").size(), 2U);
  EXPECT_EQ(trace_complaint(text), "spot.csv: holds 3 traces; expected the id of one, such as a-1");
  EXPECT_EQ(trace_complaint(text, "c"), "spot.csv: no trace c; there are a-1, a-2, b-1");
  EXPECT_EQ(trace_complaint("trace,time_s,available\na,0,1\na,9,1\n", "c"),
            "spot.csv: no trace c; there is a");
  std::string many = "trace,time_s,available\n";
  for (const char* id : {"e", "d", "c", "b", "a"}) many += std::string(id) + ",0,1\n" + id + ",9,1\n";
  EXPECT_EQ(trace_complaint(many, "x"), "spot.csv: no trace x; there are a, b, c, d, ...");
}

TEST(Trace, may_begin_with_a_byte_order_mark) {
  EXPECT_EQ(traces("\xef\xbb\xbft_seconds,available\n0,1\n9,1\n").front().length, 9s);
}

TEST(Trace, events_keep_the_time_of_each_node) {
  const std::vector<Trace> read = traces(
      "trace_id,t_seconds,event,node\nf,0.0,add,n1\nf,0.0,add,n2\nf,60,remove,n1\nf,90,add,n3\nf,100,remove,"
      "n2\n",
      "f");
  EXPECT_EQ(read[0].machines, 2);
  std::multiset<std::pair<Duration, Duration>> spans;
  for (const MachineLifetime& lifetime : read[0].lifetimes) spans.emplace(lifetime.comes, lifetime.goes);
  EXPECT_EQ(spans, (std::multiset<std::pair<Duration, Duration>>{{0s, 60s}, {0s, 100s}, {90s, 100s}}));
}

TEST(Trace, errors_name_file_line_value_and_what_was_expected) {
  EXPECT_EQ(trace_complaint("time,n\n"),
            "spot.csv:1: header \"time,n\": expected [trace_id,]t_seconds,available[,spot_usd_h] or "
            "[trace_id,]t_seconds,event,node, each column once");
  EXPECT_EQ(trace_complaint("t_seconds,available,speed\n").substr(0, 51),
            "spot.csv:1: header \"t_seconds,available,speed\": exp");
  for (const std::string header : {"t_seconds,time_s,available", "trace,trace_id,t_seconds,available",
                                   "t_seconds,available,available", "t_seconds,event,node,spot_usd_h"})
    EXPECT_EQ(trace_complaint(header + "\n"),
              "spot.csv:1: header \"" + header +
                  "\": expected [trace_id,]t_seconds,available[,spot_usd_h] or "
                  "[trace_id,]t_seconds,event,node, each column once");
  EXPECT_EQ(trace_complaint("t_seconds,available\n0,1\n5,-1\n"),
            "spot.csv:3: available -1: expected a whole number from 0 to 10000");
  EXPECT_EQ(trace_complaint("t_seconds,available\n0,1\n\nfive,1\n"),
            "spot.csv:4: t_seconds five: expected a number");
  for (const std::string time : {"nan", "inf", "1e300", "-1"})
    EXPECT_EQ(trace_complaint("t_seconds,available\n0,1\n" + time + ",1\n"),
              "spot.csv:3: t_seconds " + time + ": expected seconds from 0 to 100000000");
  for (const std::string machines : {"nan", "inf", "1e300", "1.5"})
    EXPECT_EQ(trace_complaint("t_seconds,available\n0,1\n5," + machines + "\n"),
              "spot.csv:3: available " + machines + ": expected a whole number from 0 to 10000");
  EXPECT_EQ(trace_complaint("t_seconds,available\n9,1\n5,1\n"),
            "spot.csv:3: t_seconds 5: expected 9 or later, the time of the row before");
  EXPECT_EQ(trace_complaint("t_seconds,available\n9,1,3\n"), "spot.csv:2: \"9,1,3\": expected 2 columns");
  EXPECT_EQ(trace_complaint("t_seconds,event,node\n0,remove,x\n"),
            "spot.csv:2: remove x: expected a node that is there");
  EXPECT_EQ(trace_complaint("t_seconds,available\n"), "spot.csv: expected rows after the header");
}

TEST(Trace, a_fleet_is_mapped_in_proportion) {
  const std::vector<Trace> fleet = traces("t_seconds,available\n0,16\n100,4\n200,12\n300,12\n");
  for (const int peers : {8, 16, 32, 64}) {
    const std::vector<MachineLifetime> lifetimes = lifetimes_in(fleet, {.peers = peers, .length = 300s});
    EXPECT_EQ(there_at(lifetimes, 50s), peers);
    if (peers < 16) continue;
    EXPECT_EQ(there_at(lifetimes, 150s), peers / 4) << peers;
    EXPECT_EQ(there_at(lifetimes, 250s), peers * 3 / 4) << peers;
  }
}

TEST(Trace, slots_of_a_single_machine_are_apart) {
  const std::vector<Trace> one = traces("t_seconds,available\n0,1\n100,0\n200,1\n400,1\n");
  const std::vector<MachineLifetime> lifetimes = lifetimes_in(one, {.peers = 4, .length = 400s});
  // Shifted by 0, 100, 200 and 300 s: at any time one of the four slots is in the gap.
  for (Duration t = 0s; t < 400s; t += 10s) EXPECT_EQ(there_at(lifetimes, t), 3) << to_seconds(t);
  for (const MachineLifetime& lifetime : lifetimes) EXPECT_LT(lifetime.comes, lifetime.goes);
}

TEST(Trace, a_stay_goes_on_where_the_trace_begins_anew) {
  const std::vector<Trace> one = traces("t_seconds,available\n0,1\n100,0\n200,1\n400,1\n");
  const std::vector<MachineLifetime> lifetimes =
      lifetimes_in(one, {.peers = 1, .from = 300s, .length = 300s});
  EXPECT_EQ(lifetimes, (std::vector<MachineLifetime>{{0, 0s, 200s, true}}));
}

TEST(Trace, a_window_cuts_and_speed_shortens) {
  const std::vector<Trace> fleet = traces("t_seconds,available\n0,8\n100,0\n200,8\n300,8\n");
  const std::vector<MachineLifetime> lifetimes =
      lifetimes_in(fleet, {.peers = 8, .from = 50s, .length = 50s, .speed = 4});
  EXPECT_EQ(there_at(lifetimes, 12s), 8);
  EXPECT_EQ(there_at(lifetimes, 13s), 0);
  EXPECT_EQ(there_at(lifetimes, 38s), 8);
  EXPECT_EQ(lifetimes.back().goes, 50s);
  EXPECT_FALSE(lifetimes.back().taken);
}

}  // namespace
}  // namespace tw::sim
