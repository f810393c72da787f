// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/catalog_price.h"

#include <gtest/gtest.h>

namespace tw::cli {
namespace {

using market::Purchase;

market::Offer offer_at(const char* region, const char* zone, double usd_per_h,
                       Purchase purchase = Purchase::spot) {
  market::Offer offer;
  offer.provider = "gcp";
  offer.region = region;
  offer.zone = zone;
  offer.vm_type = "n1-standard-8";
  offer.purchase = purchase;
  offer.usd_per_h = usd_per_h;
  return offer;
}

const market::Site kHere{"gcp", "us-west1", "us-west1-b"};

TEST(CatalogPrice, is_that_of_the_nearest_offer_and_of_these_the_lowest) {
  std::vector<market::Offer> offers = {offer_at("us", "", 0.1), offer_at("us-west", "", 0.2)};
  EXPECT_EQ(price_of_type(offers, "N1-Standard-8", kHere, Purchase::spot).value().usd_per_h, 0.2);
  offers.push_back(offer_at("us-west1", "us-west1-a", 0.4));
  offers.push_back(offer_at("us-west1", "us-west1-c", 0.3));
  EXPECT_EQ(price_of_type(offers, "n1-standard-8", kHere, Purchase::spot).value().usd_per_h, 0.3);
  offers.push_back(offer_at("us-west1", "us-west1-b", 0.5));
  EXPECT_EQ(price_of_type(offers, "n1-standard-8", kHere, Purchase::spot).value().usd_per_h, 0.5);
  offers.push_back(offer_at("us-west1", "us-west1-b", 0.9, Purchase::on_demand));
  EXPECT_EQ(price_of_type(offers, "n1-standard-8", kHere, Purchase::on_demand).value().usd_per_h, 0.9);
}

TEST(CatalogPrice, that_nobody_knows_is_an_error_with_what_is_known) {
  const auto none = price_of_type({offer_at("us-west1", "", 0.3)}, "n2", kHere, Purchase::spot);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            "no spot price of n2 at gcp:us-west1:us-west1-b; priced there: n1-standard-8");
  EXPECT_FALSE(price_of_type({offer_at("europe-west1", "", 0.3)}, "n1-standard-8", kHere, Purchase::spot));
}

TEST(CatalogPrice, knows_the_type_of_a_machine_of_aws) {
  EXPECT_EQ(type_of({.sys_vendor = "Amazon EC2", .product_name = "g5.xlarge"}), "g5.xlarge");
  EXPECT_EQ(type_of({.sys_vendor = "Google", .product_name = "Google Compute Engine"}), "");
}

TEST(CatalogPrice, of_started_processes_is_a_number) {
  EXPECT_EQ(price_text("", "").value(), "");
  EXPECT_EQ(price_text("0.35", "").value(), "0.35");
  EXPECT_FALSE(price_text("cheap", ""));
  EXPECT_FALSE(price_text("catalog:n1-standard-8", "")) << "prices differ by region";
}

}  // namespace
}  // namespace tw::cli
