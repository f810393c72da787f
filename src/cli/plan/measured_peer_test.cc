// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/measured_peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tw::cli {
namespace {

using ::testing::HasSubstr;
using world::Phase;

/// A peer whose rounds of 100 samples took these times to compute.
Result<MeasuredPeer> measure(const std::vector<double>& seconds) {
  PeerMeter meter;
  meter.take({PeerId{1},
              0,
              {.fact = event::Start{
                   .hardware = "a CPU, 2 cores", .parameters = 2e6, .state_bytes = 24e6, .tensors = 4}}});
  for (const double calc_s : seconds) {
    const auto round = static_cast<Round>(meter.rounds() + 1);
    const double memory = round == 3 ? 9e8 : 5e8;
    meter.take({PeerId{1},
                0,
                {.round = round,
                 .fact = event::Commit{.samples = 100, .calc_s = calc_s, .use = {.peak_memory = memory}}}});
  }
  EXPECT_EQ(meter.rounds(), std::ssize(seconds));
  return meter.measured();
}

TEST(MeasuredPeer, is_as_fast_as_its_median_round_after_the_warm_up) {
  const auto found = measure({9, 3, 2, 1, 1, 1.25, 1, 0.8});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_DOUBLE_EQ(found.value().samples_per_s, 100);
  EXPECT_EQ(found.value().rounds, 5);
  EXPECT_EQ(found.value().warm_up, 3);
  EXPECT_NEAR(found.value().spread, 1.15, 0.02) << "P10 88, P90 115 samples/s";
  EXPECT_EQ(found.value().parameters, 2e6);
  EXPECT_EQ(found.value().tensors, 4);
  EXPECT_EQ(found.value().state_bytes, 24e6);
  EXPECT_EQ(found.value().peak_memory_bytes, 9e8);
  EXPECT_EQ(found.value().hardware, "a CPU, 2 cores");
}

TEST(MeasuredPeer, warms_up_for_a_tenth_of_many_rounds) {
  std::vector<double> seconds(100, 1);
  std::fill_n(seconds.begin(), 10, 50.0);
  const auto found = measure(seconds);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found.value().warm_up, 10);
  EXPECT_DOUBLE_EQ(found.value().spread, 1);
}

TEST(MeasuredPeer, needs_some_rounds) {
  const auto found = measure({1, 1, 1, 1, 1});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("5 rounds were trained, and at least 6 are needed"));
}

}  // namespace
}  // namespace tw::cli
