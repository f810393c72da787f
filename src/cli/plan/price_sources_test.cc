// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/price_sources.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace tw::cli {
namespace {

TEST(PriceSources, are_named_with_how_many_offers_they_have) {
  const std::string file = testing::TempDir() + "tw-offers-" + std::to_string(getpid()) + ".csv";
  std::ofstream(file) << "provider,region,gpu,purchase,usd_per_h\nlambda,us,T4,on-demand,1\n";
  const auto sources = price_sources({.offers = {file}, .catalog = "built-in"});
  std::remove(file.c_str());
  ASSERT_TRUE(sources) << sources.error().message;
  EXPECT_EQ(sources.value().sources.front(), file + ": 1 offer");
}

}  // namespace
}  // namespace tw::cli
