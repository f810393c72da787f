// SPDX-License-Identifier: Apache-2.0
#include "average/bandwidth/bandwidth_meter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace tw::average {
namespace {

using namespace std::chrono_literals;

constexpr Duration kMoment = 10ms;
constexpr std::uint64_t kMessage = 20'000;
constexpr PeerId kHere{1}, kThere{2};

/// Peers with a meter each. Their links and pairs are shared evenly (max-min fair) among peers that have
/// something to send, in small time steps. Bandwidth reports arrive at once.
class Bed {
 public:
  explicit Bed(const std::vector<double>& rates) {
    for (const double rate : rates) lines.push_back({rate, rate});
    meters.resize(rates.size());
  }

  /// Adds bytes that each of these pairs has to send.
  void load(const std::vector<std::pair<int, int>>& which, double bytes) {
    for (const auto& pair : which) left[pair] += bytes;
  }

  void run_for(Duration duration) {
    for (const Instant end = now + duration; now < end;) moment();
  }

  double up(std::size_t peer) const { return meters[peer].bandwidth().up_bytes_per_s; }

  double down(std::size_t peer) const { return meters[peer].bandwidth().down_bytes_per_s; }

  struct Ends {
    double up, down;
  };

  std::vector<Ends> lines;
  std::map<std::pair<int, int>, double> pairs;  ///< slower ones
  std::map<std::pair<int, int>, double> left;
  std::vector<BandwidthMeter> meters;
  Instant now = Instant{} + 1h;
  int bandwidth_reports = 0;

 private:
  // All rates grow equally until a link or pair that they cross is full.
  std::map<std::pair<int, int>, double> rates() const {
    std::map<std::pair<int, int>, double> rate;
    for (const auto& [pair, bytes] : left) {
      if (bytes > 0) rate[pair] = 0;
    }
    std::vector<Ends> free = lines;
    std::set<std::pair<int, int>> growing;
    for (const auto& entry : rate) growing.insert(entry.first);
    while (!growing.empty()) {
      std::vector<int> out(lines.size()), in(lines.size());
      for (const auto& [from, to] : growing)
        ++out[static_cast<std::size_t>(from)], ++in[static_cast<std::size_t>(to)];
      double step = std::numeric_limits<double>::infinity();
      for (const auto& pair : growing) {
        const auto from = static_cast<std::size_t>(pair.first), to = static_cast<std::size_t>(pair.second);
        step = std::min({step, free[from].up / out[from], free[to].down / in[to]});
        if (pairs.contains(pair)) step = std::min(step, pairs.at(pair) - rate[pair]);
      }
      for (const auto& pair : growing) {
        rate[pair] += step;
        free[static_cast<std::size_t>(pair.first)].up -= step;
        free[static_cast<std::size_t>(pair.second)].down -= step;
      }
      std::erase_if(growing, [&](const auto& pair) {
        const bool slow = pairs.contains(pair) && rate[pair] >= pairs.at(pair) * (1 - 1e-9);
        return slow || free[static_cast<std::size_t>(pair.first)].up < 1 ||
               free[static_cast<std::size_t>(pair.second)].down < 1;
      });
    }
    return rate;
  }

  void moment() {
    now += kMoment;
    for (const auto& [pair, rate] : rates()) {
      const double bytes = std::min(left[pair], rate * to_seconds(kMoment));
      left[pair] -= bytes;
      under_way_[pair] += bytes;
      const auto [from, to] = pair;
      BandwidthMeter& sender = meters[static_cast<std::size_t>(from)];
      const PeerId sender_id{static_cast<std::uint64_t>(from)}, receiver_id{static_cast<std::uint64_t>(to)};
      while (under_way_[pair] >= kMessage) {
        under_way_[pair] -= kMessage;
        sender.handed(now, receiver_id);
        const auto bandwidth_report = meters[static_cast<std::size_t>(to)].arrived(now, sender_id, kMessage);
        if (!bandwidth_report) continue;
        ++bandwidth_reports;
        sender.on_bandwidth_report(now, receiver_id, *bandwidth_report, 0ms);
      }
      if (left[pair] <= 0) sender.ran_dry(receiver_id);
    }
  }

  std::map<std::pair<int, int>, double> under_way_;
};

std::vector<std::pair<int, int>> all_pairs(int peers) {
  std::vector<std::pair<int, int>> pairs;
  for (int from = 0; from < peers; ++from) {
    for (int to = 0; to < peers; ++to) {
      if (from != to) pairs.emplace_back(from, to);
    }
  }
  return pairs;
}

TEST(BandwidthMeter, knows_lines_that_were_full) {
  Bed bed({20e6, 20e6, 20e6, 20e6});
  bed.load(all_pairs(4), 10e6);
  bed.run_for(1s);
  for (std::size_t peer = 0; peer < 4; ++peer) {
    EXPECT_NEAR(bed.up(peer), 20e6, 2e6);
    EXPECT_NEAR(bed.down(peer), 20e6, 2e6);
    EXPECT_TRUE(bed.meters[peer].bandwidth().slow.empty());
  }
  EXPECT_LE(bed.bandwidth_reports, 12 * 10) << "at most ten a second for each pair";
}

TEST(BandwidthMeter, knows_nothing_before_anything_was_sent) {
  EXPECT_EQ(BandwidthMeter().bandwidth(), wire::Bandwidth{});
}

TEST(BandwidthMeter, is_not_misled_by_pauses_or_by_little_to_do) {
  Bed bed({20e6, 20e6});
  bed.load(all_pairs(2), 20e6);
  bed.run_for(3s);
  for (int i = 0; i < 100; ++i) {
    bed.load(all_pairs(2), 1e5);  // a tenth of the bandwidth
    bed.run_for(50ms);
  }
  EXPECT_NEAR(bed.up(0), 20e6, 2e6);
  EXPECT_NEAR(bed.down(1), 20e6, 2e6);
}

TEST(BandwidthMeter, knows_no_line_that_never_had_all_it_could_carry) {
  Bed bed({20e6, 20e6});
  for (int i = 0; i < 100; ++i) {
    bed.load(all_pairs(2), 1e5);
    bed.run_for(50ms);
  }
  EXPECT_EQ(bed.up(0), 0);
  EXPECT_EQ(bed.down(1), 0);
}

TEST(BandwidthMeter, does_not_take_what_is_read_at_once_after_a_pause_for_a_rate) {
  BandwidthMeter meter;
  Instant now = Instant{} + 1h;
  for (int i = 0; i < 200; ++i) {
    meter.on_bandwidth_report(now, PeerId{1}, {.more = true},
                              0ms);  // 2 MB/s, but this process is stopped for 200 ms of each second
    now += 10ms;
    if (i % 100 >= 80) continue;
    for (int k = 0; k < (i % 100 == 0 && i > 0 ? 21 : 1); ++k) meter.arrived(now, PeerId{1}, kMessage);
  }
  EXPECT_NEAR(meter.bandwidth().down_bytes_per_s, 2.2e6, 0.4e6);
}

TEST(BandwidthMeter, leaves_a_fast_line_as_it_was_while_slow_receivers_hold_it_back) {
  Bed bed({40e6, 40e6, 4e6, 4e6});
  bed.load(all_pairs(4), 4e6);
  bed.load({{0, 1}, {1, 0}}, 40e6);
  bed.run_for(4s);
  EXPECT_NEAR(bed.up(0), 40e6, 4e6);
  bed.load({{0, 2}, {0, 3}, {1, 2}, {1, 3}}, 20e6);
  bed.run_for(5s);
  EXPECT_NEAR(bed.up(0), 40e6, 4e6);
  EXPECT_NEAR(bed.up(1), 40e6, 4e6);
  EXPECT_NEAR(bed.down(2), 4e6, 0.4e6);
}

TEST(BandwidthMeter, notices_within_two_seconds_that_a_line_became_slow_and_blames_no_other) {
  for (const bool outward : {true, false}) {
    Bed bed({20e6, 20e6, 20e6, 20e6});
    bed.load(all_pairs(4), 200e6);
    bed.run_for(2s);
    (outward ? bed.lines[1].up : bed.lines[1].down) = 2e6;
    bed.run_for(2s);
    EXPECT_NEAR(outward ? bed.up(1) : bed.down(1), 2.5e6, 0.9e6) << outward;
    EXPECT_NEAR(outward ? bed.down(1) : bed.up(1), 20e6, 2e6) << outward;
    for (const std::size_t other : {0U, 2U, 3U}) {
      EXPECT_GE(bed.up(other), 13e6) << outward;
      EXPECT_GE(bed.down(other), 13e6) << outward;
    }
  }
}

TEST(BandwidthMeter, notices_that_a_line_became_faster) {
  Bed bed({20e6, 20e6, 20e6});
  bed.load(all_pairs(3), 200e6);
  bed.run_for(2s);
  for (Bed::Ends& line : bed.lines) line = {30e6, 30e6};
  bed.run_for(500ms);
  EXPECT_NEAR(bed.up(0), 30e6, 3e6);
}

TEST(BandwidthMeter, takes_a_line_that_nothing_presses_for_what_it_was_before_it_became_slow) {
  Bed bed({20e6, 20e6, 20e6, 20e6});
  bed.load(all_pairs(4), 400e6);
  bed.run_for(2s);
  bed.lines[1].down = 2e6;
  bed.run_for(2s);
  ASSERT_NEAR(bed.down(1), 2.5e6, 0.9e6);
  bed.lines[1].down = 20e6;
  bed.left.clear();
  std::vector<double> known;
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < 80; ++i) {
      bed.load({{0, 1}}, 2e4);  // a tenth of the bandwidth
      bed.run_for(kMoment);
    }
    for (BandwidthMeter& meter : bed.meters) meter.end_round();
    known.push_back(bed.down(1));
  }
  EXPECT_NEAR(known[1], known[0], 0.1e6) << "after a failure it is left alone for a round";
  EXPECT_NEAR(known[2], 2 * known[0], 0.2e6);
  EXPECT_NEAR(known[3], 4 * known[0], 0.4e6);
  EXPECT_GE(known[7], 18e6);
  EXPECT_LE(known[7], 20.5e6) << "no more than it ever carried";
}

TEST(BandwidthMeter, does_not_try_a_line_again_as_long_as_it_is_pressed) {
  Bed bed({20e6, 20e6, 20e6, 20e6});
  bed.load(all_pairs(4), 400e6);
  bed.run_for(2s);
  bed.lines[1] = {2e6, 2e6};
  for (int round = 0; round < 10; ++round) {
    bed.run_for(2s);
    for (BandwidthMeter& meter : bed.meters) meter.end_round();
    EXPECT_LE(bed.up(1), 3.4e6) << round;
    EXPECT_LE(bed.down(1), 3.4e6) << round;
  }
}

TEST(BandwidthMeter, tells_a_slow_pair_from_a_slow_line) {
  Bed bed({20e6, 20e6, 20e6, 20e6});
  bed.pairs[{0, 1}] = 1e6;
  bed.load(all_pairs(4), 10e6);
  bed.run_for(8s);
  ASSERT_EQ(bed.meters[0].bandwidth().slow.size(), 1U);
  EXPECT_EQ(bed.meters[0].bandwidth().slow[0].to, PeerId{1});
  EXPECT_NEAR(bed.meters[0].bandwidth().slow[0].bytes_per_s, 1e6, 0.2e6);
  EXPECT_GE(bed.up(0), 13e6) << "1 + 6.7 + 6.7 had been there";
  EXPECT_GE(bed.down(1), 13e6);
  for (const std::size_t other : {1U, 2U, 3U}) EXPECT_TRUE(bed.meters[other].bandwidth().slow.empty());
}

TEST(BandwidthMeter, forgives_a_pair_that_is_slow_no_more) {
  Bed bed({20e6, 20e6, 20e6});
  bed.pairs[{0, 1}] = 1e6;
  bed.load(all_pairs(3), 60e6);
  bed.run_for(3s);
  bed.pairs.clear();
  bed.load({{0, 1}}, 60e6);
  bed.run_for(2s);
  EXPECT_TRUE(bed.meters[0].bandwidth().slow.empty());
}

TEST(BandwidthMeter, takes_no_rate_from_reports_that_cannot_be_true) {
  BandwidthMeter meter;
  meter.on_bandwidth_report(Instant{} + 1h, PeerId{1}, {UINT64_MAX, 1}, 0ms);
  EXPECT_EQ(meter.bandwidth().up_bytes_per_s, 0);
  meter.on_bandwidth_report(Instant{} + 1h, PeerId{1}, {UINT64_MAX, UINT64_MAX}, 0ms);
  EXPECT_LE(meter.bandwidth().up_bytes_per_s, 1e12);
}

// thin_lines 124: a joiner's first contribution was expected as fast as those of others.
TEST(BandwidthMeter, knows_the_line_over_which_it_fetched_what_it_asked_for) {
  for (const bool asked : {true, false}) {
    BandwidthMeter joiner;
    Instant now = Instant{} + 1h;
    for (int i = 0; i < 100; ++i) joiner.arrived(now += 10ms, kThere, kMessage, asked);
    EXPECT_NEAR(joiner.bandwidth().down_bytes_per_s, asked ? 2e6 : 0, 0.2e6);
  }
}

// Streams over long paths start slowly, and then hold everything that a peer has to send.
TEST(BandwidthMeter, corrects_what_it_knows_by_transfers_that_were_handed_over_at_once) {
  BandwidthMeter sender, receiver;
  Instant now = Instant{} + 1h;
  const auto carry = [&](int messages, Duration each) {
    for (int i = 0; i < messages; ++i) {
      now += each;
      if (const auto bandwidth_report = receiver.arrived(now, kHere, kMessage))
        sender.on_bandwidth_report(now, kThere, *bandwidth_report, 0ms);
    }
  };
  sender.handed(now, kThere);
  carry(100, 10ms);
  ASSERT_NEAR(sender.bandwidth().up_bytes_per_s, 2e6, 0.2e6);
  sender.ran_dry(kThere);
  carry(500, 4ms);
  EXPECT_NEAR(sender.bandwidth().up_bytes_per_s, 5e6, 0.5e6);
}

}  // namespace
}  // namespace tw::average
