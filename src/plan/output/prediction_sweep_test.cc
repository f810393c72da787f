// SPDX-License-Identifier: Apache-2.0
#include "plan/output/prediction_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tw::plan {
namespace {

using testing::HasSubstr;

std::vector<SweepPoint> swept(const std::string& peers, const std::string& range) {
  const Workload work{.model = Models::built_in().find("CONV").value(), .target_batch_size = 4096};
  return sweep(work, parse_peers(peers).value(), parse_sweep(range).value(), {}).value();
}

TEST(Sweep, doubles_the_peers_and_keeps_the_proportions_of_groups) {
  std::vector<std::string> clusters;
  for (const SweepPoint& point : swept("3xT4@gc:us;1xA10@lambda:us-west", "peers=1..12"))
    clusters.push_back(to_string(point.peers));
  EXPECT_THAT(clusters,
              testing::ElementsAre("1xT4@gcp:us", "2xT4@gcp:us", "3xT4@gcp:us;1xA10@lambda:us-west",
                                   "6xT4@gcp:us;2xA10@lambda:us-west", "9xT4@gcp:us;3xA10@lambda:us-west"));
}

TEST(Sweep, is_what_each_cluster_is_predicted_alone_and_ends_with_answers) {
  const Workload work{.model = Models::built_in().find("CONV").value(), .target_batch_size = 4096};
  const auto points = swept("1xT4@gc:us", "peers=1..64");
  ASSERT_EQ(points.size(), 7U);
  EXPECT_EQ(points[3].prediction.throughput_sps,
            predict(work, parse_peers("8xT4@gc:us").value()).value().throughput_sps);
  EXPECT_THAT(to_text(work, points), HasSubstr("machines do not pay: "));
  EXPECT_THAT(to_json(work, points), HasSubstr("machines do not pay: "));
}

TEST(Sweep, names_what_it_cannot_read) {
  for (const char* bad : {"", "peers", "peers=4", "tbs=1..4", "peers=0..4", "peers=8..4", "peers=1..9999"})
    EXPECT_FALSE(parse_sweep(bad)) << bad;
  EXPECT_EQ(parse_sweep("peers=8..4").error().message,
            "peers=8..4: expected peers=FROM..TO with numbers from 1 to 4096, such as peers=1..64");
}

}  // namespace
}  // namespace tw::plan
