// SPDX-License-Identifier: Apache-2.0
#include "plan/search/market_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "market/catalog.h"

namespace tw::plan {
namespace {

using testing::HasSubstr;

/// What check_names() says of a job on the built-in offers; empty: nothing.
std::string fault_of(const Job& job) {
  const Knowledge knowledge;
  Workload workload;
  workload.model = Models::built_in().find("CONV").value();
  const Status checked = check_names({.job = job,
                                      .workload = workload,
                                      .offers = market::built_in_offers(),
                                      .knowledge = knowledge,
                                      .tariffs = market::Tariffs::built_in()});
  return checked ? "" : checked.error().message;
}

TEST(MarketLimits, a_misspelt_name_is_refused_in_each_list_also_beside_right_ones) {
  EXPECT_EQ(fault_of({.providers = {"gcp", "gpc"}}),
            "providers gpc: no offer has this name; did you mean \"gcp\"?");
  EXPECT_EQ(fault_of({.regions = {"us-west", "us-wets"}}),
            "regions us-wets: no offer has this name; did you mean \"us-west\"?");
  EXPECT_EQ(fault_of({.regions = {"US-WEST"}}),
            "regions US-WEST: no offer has this name; did you mean \"us-west\"?");
  EXPECT_EQ(fault_of({.exclude = {"T4", "azuer"}}),
            "exclude azuer: no offer has this name; did you mean \"azure\"?");
  EXPECT_THAT(fault_of({.exclude = {"Standard_NC4as_T4_v3"}}),
              HasSubstr("no offer has this name; there are"));
  EXPECT_THAT(fault_of({.gpus = {"T4", "T5"}}), HasSubstr("gpus T5: no offer has this name"));
  EXPECT_EQ(fault_of({.quotas = {{"azuer", 2}}}),
            "quotas azuer: no offer has this name; did you mean \"azure\"?");
}

TEST(MarketLimits, a_name_that_other_limits_leave_no_offer_of_is_none_of_those) {
  EXPECT_EQ(fault_of({.providers = {"gcp"},
                      .regions = {"us", "azure:us-west"},
                      .gpus = {"T4"},
                      .exclude = {"aws", "K80", "spot", "owned"},
                      .quotas = {{"azure", 1}, {"spot", 4}}}),
            "");
}

TEST(MarketLimits, a_name_that_only_the_offers_of_today_lack_is_noted) {
  const Job job{.regions = {"us-west"}, .gpus = {"T4"}, .exclude = {"K80", "4xP100", "azure"}};
  std::vector<market::Offer> today = market::built_in_offers();
  std::erase_if(today,
                [](const market::Offer& offer) { return offer.gpu != "T4" || offer.provider == "azure"; });
  const Knowledge knowledge;
  Workload workload;
  workload.model = Models::built_in().find("CONV").value();
  const MarketInputs inputs{.job = job,
                            .workload = workload,
                            .offers = today,
                            .knowledge = knowledge,
                            .tariffs = market::Tariffs::built_in()};
  const Status checked = check_names(inputs);
  EXPECT_TRUE(checked.ok()) << checked.error().message;
  const std::vector<std::string> notes = names_without_offers(inputs);
  EXPECT_THAT(notes, testing::IsSupersetOf({"exclude: K80: no offer has it today",
                                            "exclude: 4xP100: no offer has it today",
                                            "exclude: azure: no offer has it today"}));
  EXPECT_THAT(notes, testing::Not(testing::Contains(HasSubstr("T4:"))));
}

}  // namespace
}  // namespace tw::plan
