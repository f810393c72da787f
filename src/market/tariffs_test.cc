// SPDX-License-Identifier: Apache-2.0
#include "market/tariffs.h"

#include <gmock/gmock.h>

namespace tw {
namespace {

Site at(const std::string& text) { return parse_site(text).value(); }

TEST(Tariffs, areas_pay_what_the_paper_printed) {
  const Tariffs& tariffs = Tariffs::built_in();
  const std::tuple<const char*, const char*, double> kCases[] = {
      {"gc:us", "gc:us", 0.01},
      {"gc:us", "gc:eu", 0.08},
      {"gc:eu", "gc:aus", 0.15},
      {"gc:us-west", "aws:us-west", 0.01},
      {"azure:us-south", "gc:us-west", 0.02},
      {"azure:us-south", "azure:us-south", 0},
      {"gc:eu", "onprem:eu", 0.01},
      {"onprem:eu", "gc:eu", 0},
      {"lambda:us-west", "lambda:us-west", 0},
  };
  for (const auto& [from, to, usd] : kCases)
    EXPECT_EQ(tariffs.usd_per_gb(at(from), at(to)), usd) << from << " " << to;
}

}  // namespace
}  // namespace tw
