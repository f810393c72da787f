// SPDX-License-Identifier: Apache-2.0
#include "plan/search/market_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "market/catalog.h"

namespace tw::plan {
namespace {

using testing::HasSubstr;

/// The inputs of a job with a known model.
struct Inputs {
  const Job& job;
  const std::vector<market::Offer>& offers;
  Knowledge knowledge{};
  Workload workload{.model = Models::built_in().find("CONV").value()};

  MarketInputs all() const { return {job, workload, offers, knowledge, market::Tariffs::built_in()}; }
};

/// What check_names() says of a job; empty: nothing.
std::string fault_of(const Job& job, const std::vector<market::Offer>& offers = market::built_in_offers()) {
  const Inputs inputs{job, offers};
  const Status checked = check_names(inputs.all());
  return checked ? "" : checked.error().message;
}

std::string why_no_offer(const Job& job) {
  const Inputs inputs{job, market::built_in_offers()};
  return no_offer(inputs.all()).message;
}

TEST(MarketLimits, a_misspelt_name_is_refused_in_each_list_also_beside_right_ones) {
  EXPECT_EQ(fault_of({.providers = {"gcp", "gpc"}}),
            "providers gpc: no offer has this name; did you mean \"gcp\"?");
  EXPECT_EQ(fault_of({.regions = {"us-west", "us-wets"}}),
            "regions us-wets: no offer has this name; did you mean \"us-west\"?");
  EXPECT_EQ(fault_of({.regions = {"US-WEST"}}), "");
  EXPECT_EQ(fault_of({.exclude = {"T4", "azuer"}}),
            "exclude azuer: no offer has this name; did you mean \"azure\"?");
  EXPECT_THAT(fault_of({.exclude = {"Standard_NC4as_T4_v3"}}),
              HasSubstr("no offer has this name; there are"));
  EXPECT_THAT(fault_of({.gpus = {"T4", "T5"}}), HasSubstr("gpus T5: no offer has this name"));
  EXPECT_EQ(fault_of({.quotas = {{"azuer", 2}}}),
            "quotas azuer: no offer has this name; did you mean \"azure\"?");
}

TEST(MarketLimits, a_misspelt_name_is_shown_as_the_user_wrote_it) {
  Job job{.exclude = {"t4@gcp:us"}};
  job.written[{"exclude", "t4@gcp:us"}] = "T4@gcp:us";
  EXPECT_THAT(fault_of(job), testing::StartsWith("exclude T4@gcp:us: no offer has this name"));
  EXPECT_THAT(fault_of({.quotas = {{"Tesla T5", 2}}}),
              testing::StartsWith("quotas Tesla T5: no offer has this name"));
}

TEST(MarketLimits, a_limit_is_shown_as_its_list_has_it) {
  Job job{.gpus = {"T4"}, .exclude = {"T4"}};
  job.written[{"exclude", "T4"}] = "Tesla T4";
  const std::string why = why_no_offer(job);
  EXPECT_THAT(why, HasSubstr("exclude Tesla T4: without this limit there are"));
  EXPECT_THAT(why, HasSubstr("gpus T4: without this limit there are"));
}

TEST(MarketLimits, own_names_are_those_of_offers_in_any_case) {
  const market::Offer own{.provider = "gcp",
                          .region = "us-west1",
                          .gpu = "MyBox",
                          .gpus = 1,
                          .purchase = market::Purchase::spot,
                          .quota_class = "gcp us-west1 MyBox spot"};
  EXPECT_EQ(unfit({.exclude = {"mybox"}}, own), "exclude");
  EXPECT_EQ(unfit({.gpus = {"mybox"}}, own), "");
  for (const char* name : {"gcp", "GCP", "mybox", "Spot", "gcp us-west1 mybox spot"})
    EXPECT_TRUE(is_in_quota(name, own)) << name;
  EXPECT_FALSE(is_in_quota("T4", own));
}

TEST(MarketLimits, a_quota_is_of_the_class_with_this_name_before_all_else) {
  std::vector<market::Offer> offers(3, {.provider = "gcp", .gpu = "T4", .quota_class = "gcp us T4 spot"});
  offers[0].quota_class = "NVIDIA T4";
  offers[1].quota_class = "NVIDIA Preemptible T4 GPUs";
  const auto counts = [&](const std::string& written) {
    std::string text;
    for (const market::Offer& offer : offers)
      text += is_in_quota(quota_name(written, offers), offer) ? '1' : '0';
    return text;
  };
  EXPECT_EQ(counts("NVIDIA T4"), "100");
  EXPECT_EQ(counts("nvidia preemptible T4 GPUs"), "010");
  EXPECT_EQ(counts("Tesla T4"), "111") << "no class";
  EXPECT_EQ(counts("Google"), "111");
  EXPECT_EQ(fault_of({.quotas = {{"NVIDIA Preemptible T4 GPUs", 2}}}, offers), "");
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
  EXPECT_EQ(fault_of(job, today), "");
  const Inputs inputs{job, today};
  const std::vector<std::string> notes = names_without_offers(inputs.all());
  EXPECT_THAT(notes, testing::IsSupersetOf({"exclude: K80: no offer has it today",
                                            "exclude: 4xP100: no offer has it today",
                                            "exclude: azure: no offer has it today"}));
  EXPECT_THAT(notes, testing::Not(testing::Contains(HasSubstr("T4:"))));
}

}  // namespace
}  // namespace tw::plan
