// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "e2e/program.h"
#include "market/network.h"

namespace tw {
namespace {

using testing::HasSubstr;

class NetTest : public ProgramTest {
 protected:
  /// The address at which a probe answers.
  static std::string address_of(const Program& program) {
    const std::string begin = "answers on ";
    wait_until([&] { return program.says("; ends"); });
    const std::string text = program.output();
    const auto from = text.find(begin) + begin.size();
    return text.substr(from, text.find(';', from) - from);
  }

  Program answering(const std::string& site, const std::string& name) const {
    return tw({"net", "probe", "--site", site, "--listen", "127.0.0.1:0", "--run", path("run")}, name);
  }
};

TEST_F(NetTest, probes_measure_each_pair_of_sites_over_the_links_of_a_run) {
  Program west = answering("gcp:us-west1", "west");
  Program other = answering("gcp:us-west1", "other");
  Program east = answering("aws:us-east-1", "east");
  Program home = tw({"net", "probe", "--site", "onprem:eu", address_of(west), address_of(other),
                     address_of(east), "--run", path("run"), "--ms", "200", "--out", path("net.csv")},
                    "home");
  ASSERT_EQ(home.wait(), 0) << home.output();
  const auto profile = market::read_network("net.csv", content_of(path("net.csv")));
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile.value().paths().size(), 7U);  // three pairs, both ways, and the LAN of us-west1
  for (const auto& [sites, rate] : profile.value().paths()) {
    EXPECT_GT(rate.path_bytes_per_s, 1e6) << to_string(sites.first) << " " << to_string(sites.second);
    EXPECT_GT(rate.rtt_s, 0);
    EXPECT_LT(rate.rtt_s, 0.5);
  }
  Program shown = tw({"net", "show", "onprem:eu", "gcp:us-west1", "--profile", path("net.csv")}, "shown");
  EXPECT_EQ(shown.wait(), 0);
  EXPECT_THAT(shown.output(), HasSubstr("tw net probe, "));
  west.send(SIGTERM);
  EXPECT_EQ(west.wait(), 0) << west.output();
}

TEST_F(NetTest, a_probe_says_whom_it_cannot_reach_and_who_is_no_probe_of_this_run) {
  std::string gone;
  {
    Program west = answering("gcp:us-west1", "west");
    gone = address_of(west);
    Program stranger = tw({"net", "probe", "--site", "onprem:eu", gone, "--insecure"}, "stranger");
    EXPECT_EQ(stranger.wait(), 1);
    EXPECT_THAT(stranger.output(), HasSubstr(gone));
  }
  Program late = tw({"net", "probe", "--site", "onprem:eu", gone, "--run", path("run")}, "late");
  EXPECT_EQ(late.wait(), 1);
  EXPECT_THAT(late.output(), HasSubstr(gone + ": "));
  Program bare = tw({"net", "probe", "--site", "onprem:eu", gone}, "bare");
  EXPECT_EQ(bare.wait(), 2);
  EXPECT_THAT(bare.output(), HasSubstr("probes show each other a token"));
}

}  // namespace
}  // namespace tw
