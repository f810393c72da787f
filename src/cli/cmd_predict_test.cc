// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "cli/commands.h"

namespace tw::cli {
namespace {

TEST(Predict, notes_once_that_a_region_is_priced_as_its_area) {
  const std::string file = testing::TempDir() + "tw-cluster-" + std::to_string(getpid()) + ".yaml";
  std::ofstream(file) << "model: RXLM\ntbs: 32768\npeers: [1xT4@gcp:usx, 1xT4@gcp:usx, 1xT4@gcp:us-west1]\n";
  PredictArguments arguments;
  arguments.cluster = file;
  arguments.market.catalog = "built-in";
  testing::internal::CaptureStdout();
  EXPECT_EQ(predict(arguments), kDone);
  const std::string text = testing::internal::GetCapturedStdout();
  std::remove(file.c_str());
  const std::string note = "price: gcp:usx is no known region: priced as gcp:us\n";
  ASSERT_NE(text.find(note), std::string::npos) << text;
  EXPECT_EQ(text.find("no known region"), text.rfind("no known region")) << text;
}

}  // namespace
}  // namespace tw::cli
