// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text/csv.h"
#include "market/catalog.h"
#include "market/tariffs.h"

namespace tw::market {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(TW_REFERENCE_DIR) / "market";

std::string text_of(const std::string& name) {
  std::ifstream file(kFolder / name, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class CatalogReference : public testing::Test {
 protected:
  /// Reads the offers of whole catalogs; checks names and counts, so that no row is lost.
  static CatalogOffers read(const std::string& cloud, const std::vector<std::string>& names) {
    std::vector<std::string> texts;
    std::vector<CatalogFile> files;
    int rows = 0;
    texts.reserve(names.size());
    for (const std::string& name : names) {
      texts.push_back(text_of(name));
      files.push_back({name, texts.back(), 0});
      rows += static_cast<int>(CsvTable::parse(name, texts.back(), {}).value().size());
    }
    auto got = read_skypilot(cloud, files);
    EXPECT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(got.value().rows, rows);
    for (const Offer& offer : got.value().offers)
      EXPECT_TRUE(area_of(site_of(offer)).has_value()) << to_string(site_of(offer));
    return std::move(got).value();
  }

  static long count(const CatalogOffers& got, Purchase purchase) {
    return std::count_if(got.offers.begin(), got.offers.end(), [&](const Offer& offer) {
      return offer.purchase == purchase && !offer.gpu.empty();
    });
  }
};

TEST_F(CatalogReference, aws) {
  const CatalogOffers got = read("aws", {"aws_gpu_vms_sample.csv"});
  EXPECT_THAT(got.left_out, testing::IsEmpty());
  EXPECT_EQ(count(got, Purchase::on_demand), 82);
  EXPECT_EQ(count(got, Purchase::spot), 82);
}

TEST_F(CatalogReference, azure) {
  const CatalogOffers got = read("azure", {"azure_gpu_vms.csv"});
  EXPECT_THAT(got.left_out, testing::IsEmpty());
  EXPECT_EQ(count(got, Purchase::on_demand), 829);
  EXPECT_EQ(count(got, Purchase::spot), 829 - 26);
}

TEST_F(CatalogReference, gcp_gpus_with_their_hosts) {
  const CatalogOffers got = read("gcp", {"gcp_gpu_vms.csv", "gcp_host_vms.csv"});
  EXPECT_EQ(got.hosts, 2571);
  // GPUs that are priced in zones without a machine for them.
  EXPECT_THAT(got.left_out, testing::SizeIs(31));
  EXPECT_THAT(got.left_out, testing::Each(testing::ContainsRegex("needs a[23]-.*does not list")));
  EXPECT_EQ(count(got, Purchase::on_demand), 747 - 31);
}

TEST_F(CatalogReference, lambda) {
  const CatalogOffers got = read("lambda", {"lambda_gpu_vms.csv"});
  EXPECT_THAT(got.left_out, testing::IsEmpty());
  EXPECT_EQ(count(got, Purchase::on_demand), 391);
  EXPECT_EQ(count(got, Purchase::spot), 0);
}

TEST_F(CatalogReference, vast) {
  const CatalogOffers got = read("vast", {"vast_gpu_vms.csv"});
  EXPECT_THAT(got.left_out, testing::IsEmpty());
  EXPECT_EQ(count(got, Purchase::on_demand), 64);
}

TEST_F(CatalogReference, tariffs_are_those_of_the_price_grid) {
  const std::string text = text_of("egress_prices.csv");
  const CsvTable table = CsvTable::parse("egress_prices.csv", text, {"src", "dst", "usd_per_gb"}).value();
  int checked = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    CsvRow row = table.row(i);
    const auto site = [&](const char* column) {
      std::string name = row.text(column) == "internet" ? "elsewhere:shelf" : row.text(column);
      if (name.starts_with("gcp:")) name.resize(name.size() - 2);  // written with a zone: gcp:us-east1-b
      return parse_site(name).value();
    };
    const Site from = site("src");
    const Site to = site("dst");
    if (from.region.find("gov") != std::string::npos || to.region.find("gov") != std::string::npos) continue;
    ASSERT_NEAR(Tariffs::built_in().usd_per_gb(from, to), row.number("usd_per_gb"), 1e-9)
        << to_string(from) << " to " << to_string(to);
    ++checked;
  }
  EXPECT_GT(checked, 4500);
}

}  // namespace
}  // namespace tw::market
