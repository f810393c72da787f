// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/stream_count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>

namespace tw::host {
namespace {

using namespace std::chrono_literals;

/// So much saturated time over a path that carries this with so many streams.
void saturate(StreamCount& count, Duration time, const std::function<double(int streams)>& bytes_per_s) {
  for (Duration passed{}; passed < time; passed += 100ms) {
    count.on_saturated(100ms, static_cast<std::uint64_t>(0.1 * bytes_per_s(count.wanted())));
  }
}

/// Window-bound streams over a line.
std::function<double(int)> line(double bytes_per_s, Duration round_trip) {
  return [=](int streams) {
    return std::min(bytes_per_s, streams * StreamCount::kWindowBytes / to_seconds(round_trip));
  };
}

TEST(StreamCount, begins_with_what_its_first_target_needs_at_this_distance) {
  EXPECT_EQ(StreamCount(200us).wanted(), 1);
  EXPECT_EQ(StreamCount(13ms).wanted(), 1);
  EXPECT_EQ(StreamCount(103ms).wanted(), 8);
  EXPECT_EQ(StreamCount(300ms).wanted(), 22);
  EXPECT_EQ(StreamCount(2s).wanted(), 24);
}

TEST(StreamCount, begins_with_less_where_many_links_share_the_line) {
  StreamCount count(103ms);
  count.share_with(4);
  EXPECT_EQ(count.wanted(), 8);
  count.share_with(6);
  EXPECT_EQ(count.wanted(), 5);
  count.share_with(1);
  EXPECT_EQ(count.wanted(), 8) << "the others have gone";
}

TEST(StreamCount, keeps_what_it_found_out_when_links_come) {
  StreamCount count(103ms);
  saturate(count, 60s, line(700e6, 103ms));
  ASSERT_EQ(count.wanted(), 32);
  count.share_with(6);
  EXPECT_EQ(count.wanted(), 32);
}

TEST(StreamCount, takes_no_more_than_its_part_of_all_streams) {
  StreamCount count(103ms);
  count.share_with(8);
  saturate(count, 120s, [](int streams) { return 1e6 * streams; });
  EXPECT_EQ(count.wanted(), StreamCount::kMostTogether / 8);
}

TEST(StreamCount, grows_until_the_line_is_full_and_not_beyond) {
  StreamCount count(103ms);  // 25 MB/s a stream
  saturate(count, 60s, line(700e6, 103ms));
  EXPECT_EQ(count.wanted(), 32);
  StreamCount narrow(103ms);
  saturate(narrow, 15s, line(100e6, 103ms));
  EXPECT_EQ(narrow.wanted(), 8) << "sixteen carried no more";
}

TEST(StreamCount, never_wants_more_than_the_most) {
  StreamCount count(103ms);
  saturate(count, 120s, [](int streams) { return 1e6 * streams; });
  EXPECT_EQ(count.wanted(), StreamCount::kMost);
}

TEST(StreamCount, keeps_to_a_lower_most) {
  StreamCount count(103ms, 1);
  saturate(count, 60s, [](int streams) { return 1e6 * streams; });
  EXPECT_EQ(count.wanted(), 1);
}

TEST(StreamCount, tries_again_after_a_pause) {
  StreamCount count(103ms);
  saturate(count, 15s, line(100e6, 103ms));
  ASSERT_EQ(count.wanted(), 8);
  saturate(count, 60s, line(400e6, 103ms));
  EXPECT_EQ(count.wanted(), 16);
}

TEST(StreamCount, leaves_neighbours_alone) {
  StreamCount count(500us);
  saturate(count, 60s, [](int streams) { return 1e6 * streams; });
  EXPECT_EQ(count.wanted(), 1);
}

TEST(StreamCount, guesses_again_while_nothing_was_tried) {
  StreamCount count(300ms);
  const int far = count.wanted();
  count.on_round_trip(10ms);
  EXPECT_LT(count.wanted(), far);
  EXPECT_EQ(count.wanted(), StreamCount(10ms).wanted());
}

TEST(StreamCount, takes_back_what_a_first_measurement_in_a_queue_brought) {
  StreamCount count(3ms);
  saturate(count, 5s, [](int streams) { return 1e6 * streams; });
  ASSERT_GT(count.wanted(), 1);
  count.on_round_trip(5ms);
  EXPECT_GT(count.wanted(), 1) << "longer, in another queue";
  count.on_round_trip(1ms);
  EXPECT_EQ(count.wanted(), 1);
  EXPECT_FALSE(count.is_far());
  saturate(count, 60s, [](int streams) { return 1e6 * streams; });
  EXPECT_EQ(count.wanted(), 1);
}

}  // namespace
}  // namespace tw::host
