// SPDX-License-Identifier: Apache-2.0
#include "plan/model/cluster.h"

#include <gtest/gtest.h>

namespace tw::plan {
namespace {

TEST(ParsePeers, reads_counts_machines_and_sites) {
  const auto peers = parse_peers("4xT4@gc:us;1xDGX2-8xV100@onprem:eu").value();
  const std::vector<PeerGroup> expected{{4, "T4", {"gcp", "us", ""}},
                                        {1, "DGX2-8xV100", {"onprem", "eu", ""}}};
  EXPECT_EQ(peers, expected);
  EXPECT_EQ(to_string(peers), "4xT4@gcp:us;1xDGX2-8xV100@onprem:eu");
  EXPECT_EQ(count_of(peers), 5);
  EXPECT_EQ(to_string(network_site(peers[1])), "onprem-dgx2:eu");
}

TEST(ParsePeers, reads_how_a_group_is_paid_for) {
  const auto peers = parse_peers("1xT4@gcp:us on-demand;7xT4@gcp:us  spot;1xT4@onprem:eu").value();
  EXPECT_EQ(peers[0].purchase, market::Purchase::on_demand);
  EXPECT_EQ(peers[1].purchase, market::Purchase::spot);
  EXPECT_EQ(peers[2].purchase, std::nullopt);
  EXPECT_EQ(to_string(peers), "1xT4@gcp:us on-demand;7xT4@gcp:us spot;1xT4@onprem:eu");
  EXPECT_EQ(parse_peers("1xT4@gcp:us rented").error().message,
            "1xT4@gcp:us rented: expected spot, on-demand or owned after the machine");
}

TEST(ParsePeers, minds_neither_spaces_nor_case) {
  EXPECT_EQ(parse_peers(" 4Xt4@GC:US ; 1xdgx2-8xv100@OnPrem:eu\t").value(),
            parse_peers("4xT4@gc:us;1xDGX2-8xV100@onprem:eu").value());
  EXPECT_EQ(parse_peers("2x4xt4@gc:us; 1xNVIDIA A100-SXM4-80GB @gc:us spot").value(),
            parse_peers("2x4xT4@gc:us;1xA100-80GB@gc:us spot").value());
  EXPECT_EQ(parse_peers("1xmine@gc:us").value()[0].gpu, "mine");
}

TEST(ParsePeers, names_what_it_cannot_read) {
  for (const char* bad :
       {"", "T4@gc:us", "2xT4", "0xT4@gc:us", "-1xT4@gc:us", "2xT4@gc:us;", "2x@gc:us", "two x T4@gc:us",
        "2xT4@gc", "1e9xT4@gc:us", "2xT4@here@gc:us", "1xmy box@gc:us", "100001xT4@gc:us"}) {
    EXPECT_FALSE(parse_peers(bad).ok()) << bad;
  }
  EXPECT_EQ(parse_peers("1xT4@gc:us;nonsense").error().message,
            "nonsense: not a group of peers; expected COUNTxGPU@PROVIDER:REGION, such as 4xT4@gc:us");
  EXPECT_TRUE(parse_peers("1xT4@gc:us;").error().message.starts_with("an empty part of the list: not a "));
}

}  // namespace
}  // namespace tw::plan
