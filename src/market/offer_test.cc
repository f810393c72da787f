// SPDX-License-Identifier: Apache-2.0
#include "market/offer.h"

#include <gtest/gtest.h>

namespace tw::market {
namespace {

Offer filled(const char* provider, const char* region, const char* vm_type, Purchase purchase) {
  Offer offer{.provider = provider, .region = region, .vm_type = vm_type, .gpu = "T4", .purchase = purchase};
  fill_in(offer);
  return offer;
}

TEST(Offer, counts_for_the_limit_that_its_cloud_counts_it_for) {
  const auto quota = [](const char* provider, const char* vm_type, Purchase purchase) {
    return filled(provider, "r", vm_type, purchase).quota_class;
  };
  EXPECT_EQ(quota("aws", "g5.xlarge", Purchase::spot), "aws r G and VT spot");
  EXPECT_EQ(quota("aws", "p3.2xlarge", Purchase::on_demand), "aws r P on-demand");
  EXPECT_EQ(quota("aws", "c5n.large", Purchase::on_demand), "aws r standard on-demand");
  EXPECT_EQ(quota("azure", "Standard_NC12s_v3", Purchase::on_demand), "azure r NCs_v3 on-demand");
  EXPECT_EQ(quota("azure", "Standard_NC12s_v3", Purchase::spot), "azure r all spot");
  EXPECT_EQ(quota("gcp", "", Purchase::spot), "gcp r T4 spot");
  EXPECT_EQ(quota("onprem", "", Purchase::owned), "");
}

TEST(Offer, has_what_its_cloud_says_of_all_machines) {
  const Offer aws = filled("aws", "r", "g5.xlarge", Purchase::spot);
  EXPECT_EQ(aws.notice_s, 120);
  EXPECT_EQ(aws.network_gbps, 5);
  EXPECT_EQ(aws.failure_domain, "aws:r");
  const Offer gcp = filled("gcp", "r", "", Purchase::on_demand);
  EXPECT_EQ(gcp.notice_s, 0);
  EXPECT_EQ(gcp.network_gbps, 7);
  EXPECT_EQ(gcp.start_up_s, 90);
  EXPECT_EQ(filled("azure", "r", "", Purchase::spot).notice_s, 30);
  EXPECT_EQ(filled("lambda", "r", "", Purchase::on_demand).network_gbps, 3.3);
}

}  // namespace
}  // namespace tw::market
