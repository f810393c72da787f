// SPDX-License-Identifier: Apache-2.0
#include "host/store/store_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace tw::host {
namespace {

TEST(StoreFiles, name_the_files_of_credentials_that_cannot_be_read) {
  const std::string home = testing::TempDir() + "tradewind_home_" + std::to_string(::getpid());
  std::map<std::string, std::string> variables{{"HOME", home}};
  const auto read = [&] { return read_aws_files([&](const std::string& name) { return variables[name]; }); };
  EXPECT_EQ(read(), AwsFiles{}) << "nobody must have them";
  std::filesystem::create_directories(home + "/.aws/credentials");
  std::ofstream(home + "/.aws/config") << "[default]\n";
  EXPECT_EQ(read(),
            (AwsFiles{"", "[default]\n",
                      home + "/.aws/credentials: cannot be read: it is a folder; expected a regular file"}));
  variables["AWS_SHARED_CREDENTIALS_FILE"] = home + "/.aws/config";
  EXPECT_EQ(read(), (AwsFiles{"[default]\n", "[default]\n", ""}));
  variables["AWS_CONFIG_FILE"] = "/none";
  EXPECT_EQ(read().trouble, "AWS_CONFIG_FILE=/none: cannot be read: No such file or directory");
  std::filesystem::remove_all(home);
}

}  // namespace
}  // namespace tw::host
