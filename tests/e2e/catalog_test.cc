// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>

#include "e2e/program.h"
#include "e2e/web_folder.h"

namespace tw {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kHeader =
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,Price,SpotPrice,Region\n";

class CatalogTest : public ProgramTest {
 protected:
  Program update(const std::string& from) const {
    return tw({"catalog", "update", "azure", "--from", from, "--into", path("catalogs")}, "update");
  }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }

  Program list() const {
    return tw(
        {"catalog", "list", "--gpu", "T4", "--spot", "--provider", "azure", "--catalog", path("catalogs")},
        "list");
  }
};

TEST_F(CatalogTest, fetches_the_newest_schema_that_has_the_cloud_and_lists_its_prices_as_new) {
  WebFolder web({{"/v6/azure/vms.csv", std::string(kHeader) + "NC4as,T4,1,4,0.526,0.111,eastus\n"},
                 {"/v7/azure/vms.csv", std::string(kHeader) + "NC4as,T4,1,4,0.526,0.153,eastus\n"}});
  Program fetched = update(web.address());
  EXPECT_EQ(fetched.wait(), 0) << fetched.output();
  EXPECT_THAT(fetched.output(), HasSubstr("catalogs/azure/vms.csv: 2 offers from 1 row"));
  Program listed = list();
  EXPECT_EQ(listed.wait(), 0) << listed.output();
  EXPECT_THAT(listed.output(), HasSubstr("0.1530"));
  EXPECT_THAT(listed.output(), HasSubstr("azure:eastus"));
  EXPECT_THAT(listed.output(), Not(HasSubstr("old")));
  std::filesystem::last_write_time(path("catalogs/azure/vms.csv"),
                                   std::filesystem::file_time_type::clock::now() - 8h);
  Program later = list();
  EXPECT_EQ(later.wait(), 0);
  EXPECT_THAT(later.output(), HasSubstr("8 h old"));
}

TEST_F(CatalogTest, prices_are_as_old_as_their_own_date_says_not_as_their_file) {
  WebFolder web({{"/v8/azure/vms.csv", std::string(kHeader) + "NC4as,T4,1,4,0.526,0.153,eastus\n"}});
  EXPECT_EQ(update(web.address()).wait(), 0);
  write("catalogs/azure/as_of", "2024-03-01\n");
  Program listed = list();
  EXPECT_EQ(listed.wait(), 0) << listed.output();
  EXPECT_THAT(listed.output(), testing::ContainsRegex("[0-9]+ days old"));
  const std::string own =
      write("own.csv",
            "provider,region,gpu,purchase,usd_per_h,as_of\nlab,here,T9,spot,1,2024-03-01\n"
            "lab,there,T9,spot,2,\nlab,later,T9,spot,3,2124-01-01\n");
  Program mine = tw({"catalog", "list", "--gpu", "T9", "--offers", own, "--catalog", "built-in"}, "mine");
  EXPECT_EQ(mine.wait(), 0) << mine.output();
  EXPECT_THAT(mine.output(), testing::ContainsRegex("lab:here.* days old"));
  EXPECT_THAT(mine.output(), testing::ContainsRegex("lab:there.* undated "));
  EXPECT_THAT(mine.output(), testing::ContainsRegex("lab:later.* [0-9]+ days ahead "));
}

TEST_F(CatalogTest, fetches_how_often_aws_takes_spot_machines) {
  WebFolder web({{"/v8/aws/vms.csv", std::string(kHeader) + "g5.xlarge,A10G,1,4,1.006,0.4,us-east-1\n"},
                 {"/spot-advisor-data.json",
                  R"({"spot_advisor": {"us-east-1": {"Linux": {"g5.xlarge": {"s": 62, "r": 3}}}}})"}});
  Program fetched = tw({"catalog", "update", "aws", "--from", web.address(), "--into", path("catalogs")});
  EXPECT_EQ(fetched.wait(), 0) << fetched.output();
  EXPECT_THAT(fetched.output(), HasSubstr("spot-advisor-data.json: interruptions of 1 machines"));
  Program listed =
      tw({"catalog", "list", "--spot", "--gpu", "A10G", "--catalog", path("catalogs"), "--json"});
  EXPECT_EQ(listed.wait(), 0) << listed.output();
  const auto offers = nlohmann::json::parse(listed.output(), nullptr, false);
  ASSERT_FALSE(offers.empty()) << listed.output();
  EXPECT_EQ(offers[0]["taken_in_30_days"], 0.175);

  web.put("/spot-advisor-data.json", "{}");
  Program odd = tw({"catalog", "update", "aws", "--from", web.address(), "--into", path("catalogs")});
  EXPECT_EQ(odd.wait(), 1);
  EXPECT_THAT(odd.output(), HasSubstr("expected AWS's spot-advisor-data.json"));
}

TEST_F(CatalogTest, a_malformed_table_is_named_and_the_one_of_before_stays) {
  WebFolder web({{"/v8/azure/vms.csv", std::string(kHeader) + "NC4as,T4,1,4,0.526,0.153,eastus\n"}});
  EXPECT_EQ(update(web.address()).wait(), 0);
  web.put("/v8/azure/vms.csv", std::string(kHeader) + "NC4as,T4,one,4,0.526,0.153,eastus\n");
  Program failed = update(web.address());
  EXPECT_EQ(failed.wait(), 1);
  EXPECT_THAT(failed.output(), HasSubstr(":2: AcceleratorCount one: expected a number"));
  EXPECT_THAT(failed.output(), HasSubstr("the catalog of azure stays as it was"));
  Program listed = list();
  EXPECT_EQ(listed.wait(), 0) << listed.output();
  EXPECT_THAT(listed.output(), HasSubstr("0.1530"));
}

TEST_F(CatalogTest, a_table_without_an_offer_takes_the_place_of_none) {
  WebFolder web({{"/v8/azure/vms.csv", std::string(kHeader) + "NC4as,T4,1,4,0.526,0.153,eastus\n"}});
  EXPECT_EQ(update(web.address()).wait(), 0);
  web.put("/v8/azure/vms.csv", kHeader);  // cut there
  Program failed = update(web.address());
  EXPECT_EQ(failed.wait(), 1);
  EXPECT_THAT(failed.output(), HasSubstr("found no offer in 0 rows; the catalog of azure stays as it was"));
  Program listed = list();
  EXPECT_EQ(listed.wait(), 0);
  EXPECT_THAT(listed.output(), HasSubstr("0.1530"));
}

TEST_F(CatalogTest, prints_no_table_of_lifetimes_before_it_has_all_of_them) {
  const auto error_of = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"catalog", "lifetimes"});
    Program program(words, {.output = path("table.txt"), .separate_errors = path("errors.txt")});
    EXPECT_EQ(program.wait(), 2);
    EXPECT_EQ(program.output(), "");
    return content_of(path("errors.txt"));
  };
  EXPECT_THAT(error_of({"foo"}), HasSubstr("lifetimes foo: expected one of gcp-"));
  EXPECT_THAT(error_of({"exponential:24", "--learn", path("nofolder")}), HasSubstr(path("nofolder")));
}

TEST_F(CatalogTest, says_what_went_wrong_on_the_way) {
  std::string gone;
  {
    WebFolder web({});
    gone = web.address();
    Program nothing = update(web.address());
    EXPECT_EQ(nothing.wait(), 1);
    EXPECT_THAT(nothing.output(), HasSubstr("no azure/vms.csv in v8 to v5 there"));
  }
  Program refused = update(gone);
  EXPECT_EQ(refused.wait(), 1);
  EXPECT_THAT(refused.output(), HasSubstr(gone + "/v8/azure/vms.csv: Failed to connect"));
  Program odd = tw({"catalog", "update", "../x"}, "odd");
  EXPECT_EQ(odd.wait(), 2);
  EXPECT_THAT(odd.output(), HasSubstr("../x: not a cloud"));
}

}  // namespace
}  // namespace tw
