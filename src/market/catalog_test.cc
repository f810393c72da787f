// SPDX-License-Identifier: Apache-2.0
#include "market/catalog.h"

#include <gmock/gmock.h>

#include "base/text/date.h"

namespace tw::market {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CatalogOffers read(const std::string& cloud, const std::vector<std::string_view>& texts) {
  std::vector<CatalogFile> files;
  for (const std::string_view text : texts) files.push_back({"vms.csv", text, 1000});
  auto offers = read_skypilot(cloud, files);
  EXPECT_TRUE(offers.ok()) << offers.error().message;
  return offers ? std::move(offers).value() : CatalogOffers{};
}

std::string refusal(const std::string& cloud, std::string_view text) {
  const auto offers = read_skypilot(cloud, {{"vms.csv", text, 0}});
  return offers ? "read" : offers.error().message;
}

TEST(SkyPilot, aws_rows_are_priced_on_demand_and_as_spot_by_zone) {
  const CatalogOffers got = read(
      "aws",
      {"InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,"
       "AvailabilityZone,Arch\n"
       "g4dn.12xlarge,T4,4.0,48.0,192.0,\"{'Gpus': [{'Name': 'T4', 'Manufacturer': 'NVIDIA', 'Count': 4, "
       "'MemoryInfo': {'SizeInMiB': 16384}}], 'TotalGpuMemoryInMiB': "
       "65536}\",3.912,1.3,us-west-2,usw2-az1,x86_64\n"
       "c5.xlarge,,,4.0,8.0,,0.17,,us-west-2,usw2-az2,x86_64\n"
       "p2.xlarge,K80,1.0,4.0,61.0,,,,us-west-2,usw2-az2,x86_64\n"});
  ASSERT_EQ(got.offers.size(), 3U);
  const Offer demand{.provider = "aws",
                     .region = "us-west-2",
                     .zone = "usw2-az1",
                     .failure_domain = "aws:us-west-2:usw2-az1",
                     .vm_type = "g4dn.12xlarge",
                     .gpu = "T4",
                     .gpus = 4,
                     .gpu_memory_gib = 16,
                     .memory_gib = 192,
                     .vcpus = 48,
                     .network_gbps = 5,
                     .purchase = Purchase::on_demand,
                     .usd_per_h = 3.912,
                     .source = "vms.csv",
                     .as_of_unix_s = 1000,
                     .start_up_s = 90,
                     .notice_s = 0,
                     .quota_class = "aws us-west-2 G and VT on-demand"};
  EXPECT_EQ(got.offers[0], demand);
  Offer spot = demand;
  spot.purchase = Purchase::spot;
  spot.usd_per_h = 1.3;
  spot.notice_s = 120;
  spot.quota_class = "aws us-west-2 G and VT spot";
  EXPECT_EQ(got.offers[1], spot);
  EXPECT_EQ(got.offers[2].gpu, "");
  EXPECT_EQ(got.offers[2].quota_class, "aws us-west-2 standard on-demand");
  EXPECT_EQ(got.rows, 3);
  EXPECT_THAT(got.left_out, ElementsAre("vms.csv:4: no price"));
}

TEST(SkyPilot, columns_are_found_by_name_and_a_spot_price_of_zero_means_none) {
  const CatalogOffers got =
      read("vast",
           {"SpotPrice,Price,GpuInfo,Region,AcceleratorCount,AcceleratorName,InstanceType,MemoryGiB,vCPUs\n"
            "0.00,1.9,\"{'Gpus': [{'Name': 'RTX4090', 'Count': 4, 'MemoryInfo': {'SizeInMiB': 98256}}], "
            "'TotalGpuMemoryInMiB': 98256}\",\"Sweden, SE, EU\",4,RTX4090,4x-RTX_4090,256,64\n"});
  ASSERT_EQ(got.offers.size(), 1U);
  EXPECT_EQ(got.offers[0].purchase, Purchase::on_demand);
  EXPECT_EQ(got.offers[0].region, "Sweden, SE, EU");
  EXPECT_DOUBLE_EQ(got.offers[0].gpu_memory_gib, 98256 / 1024.0 / 4);
  EXPECT_EQ(area_of(site_of(got.offers[0])), Area::eu);
}

TEST(SkyPilot, gpu_info_is_a_literal_of_python_or_json_or_a_bare_name) {
  const CatalogOffers got =
      read("runpod", {"InstanceType,AcceleratorName,AcceleratorCount,Region,Price,GpuInfo\n"
                      "a,H100,1,US,2,\"{\"\"Gpus\"\": [{\"\"MemoryInfo\"\": {\"\"SizeInMiB\"\": 81920}}]}\"\n"
                      "b,A100,2,US,2,\"{'Gpus': [{'Count': 2, 'MemoryInfo': {'SizeInMiB': 40}}]}\"\n"
                      "c,V100,1,US,2,V100\n"});
  ASSERT_EQ(got.offers.size(), 3U);
  EXPECT_EQ(got.offers[0].gpu_memory_gib, 80);
  EXPECT_EQ(got.offers[1].gpu_memory_gib, 40);
  EXPECT_EQ(got.offers[2].gpu_memory_gib, 0);
}

constexpr std::string_view kGcpHosts =
    "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,"
    "SpotPrice\n"
    "n1-standard-8,8.0,30.0,,,,us-west1,us-west1-b,0.38,0.08\n"
    "a2-highgpu-1g,12.0,85.0,,,,us-west1,us-west1-b,0.9,0.3\n"
    "a4-highgpu-8g,224.0,3968.0,,,,us-west1,us-west1-b,0.0,0.0\n"
    "e2-small,2.0,2.0,,,,us-west1,us-west1-b,0.02,\n";
constexpr std::string_view kGcpGpus =
    "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,"
    "SpotPrice\n"
    ",,,T4,1,{'Gpus': [{'MemoryInfo': {'SizeInMiB': 16384}}]},us-west1,us-west1-b,0.35,0.11\n"
    ",,,A100,1,,us-west1,us-west1-b,2.9,\n"
    ",,,B200,8,,us-west1,us-west1-b,100.0,40.0\n"
    ",,,T4,2,,us-west1,us-west1-b,0.7,0.22\n"
    ",,,X1,1,,us-west1,us-west1-b,1.0,\n"
    ",,,tpu-v4-8,1,,us-west1,us-west1-b,12.0,\n";

TEST(SkyPilot, gcp_offers_add_the_gpu_to_the_host_of_the_same_zone) {
  const CatalogOffers got = read("gc", {kGcpGpus, kGcpHosts});
  std::vector<std::string> seen;
  for (const Offer& o : got.offers)
    seen.push_back(o.vm_type + " " + o.gpu + " " + std::string(to_string(o.purchase)) + " " +
                   std::to_string(o.usd_per_h));
  EXPECT_THAT(seen,
              ElementsAre("n1-standard-8 T4 on-demand 0.730000", "n1-standard-8 T4 spot 0.190000",
                          "a2-highgpu-1g A100 on-demand 3.800000", "a4-highgpu-8g B200 on-demand 100.000000",
                          "a4-highgpu-8g B200 spot 40.000000", "n1-standard-8  on-demand 0.380000",
                          "n1-standard-8  spot 0.080000", "e2-small  on-demand 0.020000"));
  EXPECT_EQ(got.offers[0].vcpus, 8);
  EXPECT_EQ(got.offers[0].provider, "gcp");
  EXPECT_EQ(got.offers[0].gpu_memory_gib, 16);
  EXPECT_EQ(got.hosts, 4);
  EXPECT_THAT(got.left_out,
              ElementsAre("vms.csv:5: 2 T4 needs n1-standard-16, which us-west1-b does not list",
                          "vms.csv:6: no machine type is known that carries X1", "vms.csv:7: a TPU"));
  EXPECT_EQ(got.offers.size(), read("gcp", {kGcpHosts, kGcpGpus}).offers.size());
}

TEST(SkyPilot, a_row_that_names_the_zone_alone_lies_in_the_region_of_the_zone) {
  const CatalogOffers got =
      read("ibm", {"InstanceType,AcceleratorName,AcceleratorCount,Price,Region,AvailabilityZone\n"
                   "gx2,V100,1,2.8,,jp-tok-2\n"});
  ASSERT_EQ(got.offers.size(), 1U);
  EXPECT_EQ(got.offers[0].region, "jp-tok");
}

TEST(SkyPilot, a_malformed_row_is_named) {
  const std::string header = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,Price,Region\n";
  EXPECT_EQ(refusal("aws", header + "g5,A10G,1,4,cheap,us-east-1\n"),
            "vms.csv:2: Price cheap: expected a number from 0 to 100000");
  EXPECT_EQ(refusal("aws", header + "g5,A10G,,4,1.0,us-east-1\n"),
            "vms.csv:2: AcceleratorCount is empty: expected a number from 0.001 to 1024");
  EXPECT_EQ(refusal("aws", header + ",,,4,1.0,us-east-1\n"),
            "vms.csv:2: InstanceType is empty: expected a VM type or an AcceleratorName");
  EXPECT_EQ(refusal("aws", header + "g5,A10G,1,4,1.0,\n"), "vms.csv:2: Region is empty: expected a region");
  EXPECT_THAT(refusal("aws", "InstanceType,Price\n"), HasSubstr("vms.csv:1: no column Region"));
  EXPECT_THAT(refusal("aws", "InstanceType,GpuName,GpuCount,Price,Region\n"),
              HasSubstr("vms.csv:1: no column AcceleratorName"));
  EXPECT_THAT(refusal("aws", header + "g5,A10G,1\n"), HasSubstr("vms.csv:2: 3 fields, expected 6"));
}

TEST(OwnOffers, what_is_left_out_is_filled_in_and_what_is_written_reads_back) {
  const std::string text =
      "provider,region,gpu,gpus,purchase,usd_per_h,as_of,failure_domain\n"
      "onprem,cellar,RTX8000,2,owned,0.11,2026-01-02,rack 1\n"
      "gc,us-west1,T4,,spot,0.2,,\n";
  const auto offers = read_offers({"own.csv", text, 5000});
  ASSERT_TRUE(offers.ok()) << offers.error().message;
  const Offer& host = offers.value()[0];
  EXPECT_EQ(host.purchase, Purchase::owned);
  EXPECT_EQ(host.failure_domain, "rack 1");
  EXPECT_EQ(host.as_of_unix_s, parse_date("2026-01-02"));
  EXPECT_EQ(host.source, "own.csv");
  EXPECT_EQ(host.quota_class, "");
  EXPECT_EQ(host.start_up_s, 0);
  const Offer& rented = offers.value()[1];
  EXPECT_EQ(rented.provider, "gcp");
  EXPECT_EQ(rented.gpus, 1);
  EXPECT_EQ(rented.notice_s, 30);
  EXPECT_EQ(rented.as_of_unix_s, 5000);
  const auto again = read_offers({"again.csv", write_offers(offers.value()), 0});
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again.value(), offers.value());
}

/// As JOB and CLUSTER files write it.
TEST(OwnOffers, a_machine_of_several_gpus_may_be_named_with_their_number) {
  const auto read = [](const std::string& gpu, const std::string& gpus) {
    const std::string row = "mycloud,eu," + gpu + ",spot,1," + gpus + "\n";
    return read_offers({"own.csv", "provider,region,gpu,purchase,usd_per_h,gpus\n" + row, 0});
  };
  for (const char* gpus : {"", "4"}) {
    const auto offers = read("4xt4", gpus);
    ASSERT_TRUE(offers.ok()) << offers.error().message;
    EXPECT_EQ(offers.value()[0].gpu, "T4");
    EXPECT_EQ(offers.value()[0].gpus, 4);
  }
  EXPECT_EQ(read("4xT4", "8").error().message, "own.csv:2: gpus 8: expected nothing, or the 4 of gpu");
}

TEST(OwnOffers, take_any_name_of_a_gpu) {
  const auto offers = read_offers({"own.csv",
                                   "provider,region,gpu,purchase,usd_per_h\n"
                                   "gcp,us-west1,NVIDIA A100-SXM4-80GB,Spot,1\ngcp,us-west1,t4,spot,1\n",
                                   0});
  ASSERT_TRUE(offers) << offers.error().message;
  EXPECT_EQ(offers.value()[0].gpu, "A100-80GB");
  EXPECT_EQ(offers.value()[0].quota_class, "gcp us-west1 A100-80GB spot");
  EXPECT_EQ(offers.value()[1].gpu, "T4");
}

TEST(OwnOffers, a_bad_row_is_named) {
  const auto message = [](const std::string& row) {
    const auto offers =
        read_offers({"own.csv", "provider,region,gpu,purchase,usd_per_h,as_of\n" + row + "\n", 0});
    return offers ? "read" : offers.error().message;
  };
  EXPECT_EQ(message("aws,us-east-1,T4,leased,1,"),
            "own.csv:2: purchase leased: expected spot, on-demand or owned");
  EXPECT_EQ(message("aws,us-east-1,T4,spot,0,"),
            "own.csv:2: usd_per_h 0: expected more than 0, for what is rented");
  EXPECT_EQ(message("aws,,T4,spot,1,"), "own.csv:2: region is empty: expected a value");
  EXPECT_EQ(message("aws,us-east-1,T4,spot,1,yesterday"),
            "own.csv:2: as_of yesterday: expected a date such as 2023-04-25 or 2026-05-20T10:00:00Z");
  EXPECT_EQ(message("aws,us-east-1,T4,owned,0,"), "read");
  EXPECT_EQ(message(std::string("aws,us-east-1,T4\0,owned,0,", 26)),
            "own.csv:2: T4\\x00: expected text without control characters, in UTF-8");
}

TEST(OwnOffers, an_unknown_column_is_refused) {
  const auto message = [](const std::string& column) {
    const auto offers = read_offers(
        {"own.csv", "provider,region,gpu,purchase,usd_per_h," + column + "\naws,us-east-1,T4,spot,1,5\n", 0});
    return offers ? "read" : offers.error().message;
  };
  EXPECT_EQ(message("network_gbps"), "read");
  EXPECT_EQ(message("nework_gbps"), "own.csv: unknown column nework_gbps; did you mean \"network_gbps\"?");
  EXPECT_THAT(message("colour"), HasSubstr("unknown column colour; known here: provider, region, zone"));
}

TEST(OwnOffers, sizes_and_prices_beyond_any_machine_are_refused) {
  const auto message = [](const std::string& column, const std::string& value, const std::string& gpu) {
    const auto offers = read_offers({"own.csv",
                                     "provider,region,purchase,usd_per_h,gpu," + column +
                                         "\nonprem,cellar,owned,0.1," + gpu + "," + value + "\n",
                                     0});
    return offers ? "read" : offers.error().message;
  };
  for (const std::string gpus : {"0", "-1", "1e12", "nan", "inf"})
    EXPECT_EQ(message("gpus", gpus, "T4"),
              "own.csv:2: gpus " + gpus + ": expected a number from 0.001 to 1024");
  EXPECT_EQ(message("gpus", "0", ""), "read") << "a machine without GPU";
  EXPECT_EQ(message("gpus", "2", ""), "own.csv:2: gpus 2: expected a number from 0 to 0");
  for (const std::string column :
       {"gpu_memory_gib", "memory_gib", "vcpus", "network_gbps", "start_up_s", "notice_s"})
    EXPECT_NE(message(column, "1e12", "T4").find(column + " 1e12: expected a number from 0 to "),
              std::string::npos)
        << column;
}

TEST(BuiltInOffers, have_the_prices_of_the_paper) {
  const auto t4 = select(built_in_offers(), {.provider = "gc", .region = "us", .gpu = "t4"});
  ASSERT_TRUE(t4.ok());
  ASSERT_EQ(t4.value().size(), 2U);
  EXPECT_EQ(t4.value()[0].usd_per_h, 0.18);
  EXPECT_EQ(t4.value()[1].usd_per_h, 0.572);
  EXPECT_EQ(t4.value()[0].as_of_unix_s, parse_date("2023-04-25"));
}

TEST(Select, takes_any_name_of_a_gpu_and_names_what_is_missing_as_it_was_written) {
  EXPECT_TRUE(select(built_in_offers(), {.gpu = "Tesla T4"}).ok());
  EXPECT_EQ(select(built_in_offers(), {.provider = "Gcpx"}).error().message.find("provider Gcpx: no offer"),
            0U);
}

TEST(Offer, with_a_part_of_a_gpu_costs_more_for_a_whole_one) {
  EXPECT_EQ(usd_per_gpu_h({.gpus = 0.25, .usd_per_h = 0.02}), 0.08);
  EXPECT_EQ(usd_per_gpu_h({.gpus = 4, .usd_per_h = 2}), 0.5);
  EXPECT_EQ(usd_per_gpu_h({.usd_per_h = 3}), 3) << "a machine without one";
}

TEST(Select, what_no_offer_has_is_named_with_what_there_is) {
  const std::vector<Offer>& all = built_in_offers();
  EXPECT_EQ(select(all, {.gpu = "T5"}).error().message,
            "GPU T5: no offer; there are A10, A10G, DGX2-8xV100, K80, M60, P100, T4, V100");
  EXPECT_EQ(select(all, {.provider = "azure", .gpu = "A10"}).error().message,
            "provider azure: no offer; there are lambda");
  EXPECT_EQ(select(all, {.gpu = "A10", .purchase = Purchase::spot}).error().message,
            "spot: none of the offers that fit else are for sale that way");
  const auto bare = select(all, {.gpu = "none", .purchase = Purchase::spot});
  ASSERT_TRUE(bare.ok());
  EXPECT_EQ(bare.value().front().vm_type, "c5.xlarge");
}

TEST(Prices, are_old_after_seven_hours) {
  const Offer offer{.as_of_unix_s = 100'000};
  EXPECT_FALSE(is_old(offer, 100'000 + 7 * 3600));
  EXPECT_TRUE(is_old(offer, 100'001 + 7 * 3600));
  EXPECT_EQ(age_text(7 * 3600), "7 h");
  EXPECT_EQ(age_text(50 * 3600), "2 days");
}

TEST(Prices, of_the_future_are_not_fresh) {
  constexpr std::int64_t kDay_s = 86400;
  const Offer offer{.as_of_unix_s = 20'000 * kDay_s};
  EXPECT_EQ(price_age_text(offer, 20'003 * kDay_s), "3 days old");
  EXPECT_EQ(price_age_text(offer, 19'500 * kDay_s), "dated 500 days ahead of this clock");
  EXPECT_EQ(price_age_text(offer, 20'000 * kDay_s - 7200), "0 h old") << "clocks differ a little";
  EXPECT_EQ(price_age_text({}, kDay_s), "undated");
}

TEST(AgeText, is_in_hours_for_two_days) {
  EXPECT_EQ(age_text(47 * 3600 + 3599), "47 h");
  EXPECT_EQ(age_text(48 * 3600), "2 days");
  EXPECT_EQ(age_text(-5), "0 h");
}

}  // namespace
}  // namespace tw::market
