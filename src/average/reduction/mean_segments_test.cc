// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/mean_segments.h"

#include <gtest/gtest.h>

#include <limits>

#include "average/reduction/mean_digest.h"

namespace tw::average {
namespace {

constexpr Geometry kTwoSegments{.length = 5, .segment_length = 3};

const std::vector<float> kMean = {1, 2, 3, 4, 5};

Blob segment_of(const std::vector<float>& mean, std::uint64_t segment) {
  const std::size_t first = kTwoSegments.first(segment), count = kTwoSegments.size(segment);
  const auto bytes = std::as_bytes(std::span(mean).subspan(first, count));
  return Blob(std::vector<std::byte>(bytes.begin(), bytes.end()));
}

struct Segments : testing::Test {
  void take_all() {
    for (std::uint64_t s = 0; s < kTwoSegments.segments(); ++s)
      EXPECT_TRUE(mean.take(s, segment_of(kMean, s)));
  }

  MeanSegments mean{kTwoSegments, codec::Codec::fp32};
};

TEST_F(Segments, are_the_mean_once_all_are_here) {
  EXPECT_EQ(mean.held_bytes(), 0U);
  EXPECT_TRUE(mean.take(1, segment_of(kMean, 1)));
  EXPECT_FALSE(mean.complete());
  EXPECT_TRUE(mean.has(1));
  EXPECT_FALSE(mean.has(0));
  EXPECT_TRUE(mean.take(0, segment_of(kMean, 0)));
  ASSERT_TRUE(mean.complete());
  EXPECT_EQ(mean.digest(), digest_of_mean(kMean, kTwoSegments));
  EXPECT_EQ(mean.held_bytes(), 20U);
}

TEST_F(Segments, of_a_whole_mean_are_there_again_when_its_set_returns) {
  mean.change_set(7);
  take_all();
  mean.change_set(8);
  EXPECT_FALSE(mean.has(0));
  mean.take(0, segment_of(kMean, 0));
  EXPECT_EQ(mean.held_bytes(), 40U);
  mean.change_set(7);
  ASSERT_TRUE(mean.complete());
  EXPECT_EQ(mean.digest(), digest_of_mean(kMean, kTwoSegments));
  mean.change_set(8);
  EXPECT_FALSE(mean.has(0)) << "it was not whole";
}

TEST_F(Segments, with_a_value_that_is_no_number_are_not_taken) {
  std::vector<float> bad = kMean;
  bad[4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(mean.take(1, segment_of(bad, 1)));
  EXPECT_FALSE(mean.has(1));
}

using SegmentsDeathTest = Segments;

TEST_F(SegmentsDeathTest, are_put_once_in_their_length_and_read_when_all_are_here) {
  EXPECT_DEATH(mean.digest(), "complete");
  EXPECT_DEATH(mean.put(0, segment_of(kMean, 1), {}), "encoded.size");
  EXPECT_DEATH(mean.at(2), "segment <");
  take_all();
  EXPECT_DEATH(mean.take(0, segment_of(kMean, 0)), "has.segment");
}

}  // namespace
}  // namespace tw::average
