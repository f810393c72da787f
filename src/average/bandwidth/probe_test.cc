// SPDX-License-Identifier: Apache-2.0
#include "average/bandwidth/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace tw::average {
namespace {

using namespace std::chrono_literals;

constexpr Probe::Sizes kSizes{4 << 20, 1 << 14};
constexpr Instant kBegin = Instant{} + 1h;

wire::Member at(std::uint64_t id, const std::string& site = {}) { return {PeerId{id}, "", 1, site}; }

std::vector<PeerId> peers(std::initializer_list<std::uint64_t> ids) {
  std::vector<PeerId> all;
  for (const std::uint64_t id : ids) all.push_back(PeerId{id});
  return all;
}

TEST(ProbeTargets, are_the_first_members_of_the_other_sites) {
  const std::vector<wire::Member> members = {at(1, "us"), at(2, "eu"), at(3, "us"), at(4, "asia"),
                                             at(5, "eu")};
  EXPECT_EQ(Probe::targets(PeerId{1}, members), peers({2, 4}));
  EXPECT_EQ(Probe::targets(PeerId{2}, members), peers({4, 1}));
  EXPECT_EQ(Probe::targets(PeerId{3}, members), peers({})) << "another one speaks for its site";
  EXPECT_EQ(Probe::targets(PeerId{9}, members), peers({})) << "no member";
}

TEST(ProbeTargets, whoever_has_no_site_is_one) {
  const std::vector<wire::Member> members = {at(1), at(2), at(3, "us"), at(4, "us")};
  EXPECT_EQ(Probe::targets(PeerId{2}, members), peers({3, 1}));
}

TEST(ProbeTargets, of_many_each_is_probed_by_as_many_as_it_probes) {
  std::vector<wire::Member> members;
  for (std::uint64_t id = 1; id <= 20; ++id) members.push_back(at(id));
  std::map<PeerId, int> probed;
  for (const wire::Member& member : members) {
    for (const PeerId target : Probe::targets(member.peer, members)) ++probed[target];
  }
  ASSERT_EQ(probed.size(), members.size());
  for (const auto& [peer, times] : probed) EXPECT_EQ(times, 8) << to_string(peer);
}

/// 10 MB/s, over a tenth of a second.
constexpr wire::BandwidthReport kBandwidthReport{1'000'000, 100'000'000};

/// Bytes that the probe hands over until it has nothing more.
std::uint64_t drain(Probe& probe, Instant now, PeerId to) {
  std::uint64_t bytes = 0;
  while (const auto message = probe.next_bulk(now, to))
    bytes += std::get<wire::Padding>(*message).payload.size();
  return bytes;
}

TEST(Probe, has_something_for_its_targets_for_a_second) {
  Probe probe;
  EXPECT_FALSE(probe.next_bulk(kBegin, PeerId{2})) << "not begun";
  probe.begin(kBegin, peers({2, 3}), kSizes);
  EXPECT_TRUE(probe.next_bulk(kBegin + 900ms, PeerId{2}));
  EXPECT_TRUE(probe.next_bulk(kBegin + 900ms, PeerId{3}));
  EXPECT_FALSE(probe.next_bulk(kBegin + 900ms, PeerId{4})) << "no target";
  EXPECT_FALSE(probe.is_over(kBegin + 999ms));
  EXPECT_TRUE(probe.is_over(kBegin + 1s));
  EXPECT_FALSE(probe.next_bulk(kBegin + 1s, PeerId{2}));
}

TEST(Probe, has_little_more_under_way_than_a_line_carries_in_a_round_trip) {
  Probe probe;
  probe.begin(kBegin, peers({2}), kSizes);
  EXPECT_EQ(drain(probe, kBegin, PeerId{2}), 1U << 20);
  EXPECT_TRUE(probe.holds_back(kBegin, PeerId{2}));
  EXPECT_FALSE(probe.holds_back(kBegin, PeerId{4})) << "nothing is kept from it";
  EXPECT_THAT(probe.to_be_nudged(kBegin + 19ms), testing::IsEmpty());
  EXPECT_THAT(probe.to_be_nudged(kBegin + 20ms), testing::ElementsAre(PeerId{2}));
  EXPECT_EQ(drain(probe, kBegin + 20ms, PeerId{2}), kSizes.segment_bytes)
      << "for a bandwidth_report to come of";
  probe.on_bandwidth_report(PeerId{2}, {(1U << 20) + kSizes.segment_bytes, 100'000'000},
                            100ms);  // 10.65 MB/s
  EXPECT_FALSE(probe.holds_back(kBegin, PeerId{2}));
  const std::uint64_t more = drain(probe, kBegin, PeerId{2});
  EXPECT_NEAR(static_cast<double>(more), (1 << 20) + 2 * 10.65e6 * 0.3, 50'000);
}

TEST(Probe, takes_longer_over_a_distance) {
  Probe probe;
  probe.begin(kBegin, peers({2}), kSizes);
  probe.on_bandwidth_report(PeerId{2}, kBandwidthReport, 250ms);
  EXPECT_TRUE(probe.next_bulk(kBegin + 1900ms, PeerId{2}));
  EXPECT_TRUE(probe.is_over(kBegin + 2s));
}

TEST(Probe, sends_no_more_than_sixteen_vectors_whatever_lines_carry) {
  Probe probe;
  probe.begin(kBegin, peers({2, 3}), kSizes);
  std::uint64_t bytes = 0;
  for (int turn = 0; turn < 100; ++turn) {
    for (const PeerId target : peers({2, 3})) {
      bytes += drain(probe, kBegin, target);
      probe.on_bandwidth_report(target, {100'000'000, 100'000'000}, 100ms);
    }
  }
  EXPECT_EQ(bytes, 16 * kSizes.vector_bytes);
  EXPECT_TRUE(probe.is_over(kBegin));
}

TEST(Probe, ends_when_averaging_begins) {
  Probe probe;
  probe.begin(kBegin, peers({2}), kSizes);
  EXPECT_TRUE(probe.is_under_way());
  probe.end();
  EXPECT_FALSE(probe.is_under_way());
  EXPECT_FALSE(probe.next_bulk(kBegin, PeerId{2}));
}

}  // namespace
}  // namespace tw::average
