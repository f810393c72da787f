// SPDX-License-Identifier: Apache-2.0
#include "spot/sources.h"

#include <gtest/gtest.h>

#include <typeinfo>

#include "spot/aws.h"
#include "spot/azure.h"
#include "spot/gcp.h"
#include "spot/notice_file.h"

namespace tw::spot {
namespace {

using Ask = NoticeOptions::Ask;

const world::MachineSigns kAwsMachine{.sys_vendor = "Amazon EC2", .product_name = "g4dn.xlarge"};
const world::MachineSigns kGoogleMachine{.sys_vendor = "Google", .product_name = "Google Compute Engine"};
const world::MachineSigns kAzureMachine{.sys_vendor = "Microsoft Corporation",
                                        .product_name = "Virtual Machine",
                                        .chassis_asset_tag = "7783-7084-3265-9085-8269-3286-77"};
const world::MachineSigns kHyperV{.sys_vendor = "Microsoft Corporation", .product_name = "Virtual Machine"};
const world::MachineSigns kLaptop{.sys_vendor = "LENOVO", .product_name = "20XW"};

TEST(Sources, are_those_of_the_cloud_that_the_firmware_names) {
  EXPECT_EQ(provider_of(kAwsMachine), Source::aws);
  EXPECT_EQ(provider_of(kGoogleMachine), Source::gcp);
  EXPECT_EQ(provider_of(kAzureMachine), Source::azure);
}

// 169.254.169.254 may be anything on a machine outside clouds.
TEST(Sources, are_none_on_a_machine_that_nobody_knows) {
  for (const world::MachineSigns& signs : {kHyperV, kLaptop, world::MachineSigns{}}) {
    EXPECT_EQ(provider_of(signs), std::nullopt);
    EXPECT_TRUE(sources_of({.ask = Ask::automatic}, signs).empty());
  }
  for (const Ask ask : {Ask::signal, Ask::none}) EXPECT_TRUE(sources_of({.ask = ask}, kAwsMachine).empty());
}

TEST(Sources, are_those_that_were_asked_for) {
  const auto kinds = [](Ask ask) {
    std::vector<std::string> names;
    for (const auto& source : sources_of({.ask = ask, .path = "/notice"}, kLaptop)) {
      const NoticeSource& it = *source;
      names.emplace_back(typeid(it).name());
    }
    return names;
  };
  EXPECT_EQ(kinds(Ask::aws), std::vector<std::string>{typeid(Aws).name()});
  EXPECT_EQ(kinds(Ask::gcp), (std::vector<std::string>{typeid(Gcp).name(), typeid(Gcp).name()}));
  EXPECT_EQ(kinds(Ask::azure), std::vector<std::string>{typeid(Azure).name()});
  EXPECT_EQ(kinds(Ask::file), std::vector<std::string>{typeid(NoticeFile).name()});
}

TEST(Sources, name_signals_after_whoever_sends_them) {
  using std::chrono_literals::operator""s;
  EXPECT_EQ(signals_of({}, kLaptop).source, Source::signal);
  EXPECT_EQ(signals_of({}, {.kubernetes = true}).source, Source::kubernetes);
  EXPECT_EQ(signals_of({}, {.slurm = true}).source, Source::slurm);
  EXPECT_EQ(signals_of({.grace = 7s}, {}).grace, 7s);
  EXPECT_EQ(signals_of({.ask = Ask::none}, {}).grace, std::nullopt);
}

TEST(ProviderTime, is_read_in_each_form_that_a_provider_uses) {
  EXPECT_EQ(parse_provider_time("2017-09-18T08:22:00Z"), 1505722920);
  EXPECT_EQ(parse_provider_time("Mon, 19 Sep 2016 18:29:47 GMT"), 1474309787);
  EXPECT_EQ(parse_provider_time("21 Jan 2019 09:00:43 GMT"), 1548061243);
  EXPECT_EQ(parse_provider_time("1 Jan 1970 00:00:00 GMT"), 0);
  for (const char* text : {"", "soon", "Mon, 19 Foo 2016 18:29:47 GMT", "99 Jan 2019 09:00:43 GMT", "Mon, ",
                           "21 Jan 2019 09:00:43 PST", "21  Jan 2019 09:00 GMT"})
    EXPECT_EQ(parse_provider_time(text), std::nullopt) << text;
}

}  // namespace
}  // namespace tw::spot
