// SPDX-License-Identifier: Apache-2.0
#include "host/store/aws_files.h"

#include <gtest/gtest.h>

namespace tw::host {
namespace {

/// "key=value " of each.
std::string told(const AwsFiles& files, const std::string& name = "default") {
  std::string text;
  for (const auto& [key, value] : profile_in(files, name)) text += key + "=" + value + " ";
  return text;
}

TEST(AwsFiles, are_read_as_the_aws_tools_read_them) {
  for (const char* text : {
           "[default]\na=x\n",
           "\xef\xbb\xbf[default]\na = x\n",
           "[default] # mine\r\nA: x\r\n",
           "; a=1\nb=2\n[other]\na=3\n[ default ]\n# a=4\n\ta\t=\tx \nnothing\na=5",
           "[default]\na=x\n[other]\n[default]\na=y\n",
       })
    EXPECT_EQ(told({text}), "a=x ") << text;
  EXPECT_EQ(told({"[default]\nkey = a b;#=:c\n"}), "key=a b;#=:c ") << "no comment within a line";
  EXPECT_EQ(told({}), "");
}

TEST(AwsFiles, have_keys_below_a_key_without_a_value) {
  EXPECT_EQ(told({"", "[default]\ns3 =\n  style = path\n\n  url=u\nregion = r\n"}),
            "region=r s3= s3.style=path s3.url=u ");
  EXPECT_EQ(told({"[default]\n  a = 1\n  b = 2\n    c = 3\n"}), "a=1 b=2 c=3 ");
  EXPECT_EQ(told({"[default]\ns3 =\n[other]\n  a=1\n[default]\n  b=2"}), "b=2 s3= ");
}

TEST(AwsFiles, name_profiles_in_the_config_by_a_word_before_them) {
  const AwsFiles files{"[default]\na=1\n[minio]\na=2\n",
                       "[default]\nb=3\n[profile default]\nb=0\nc=4\n[profile  \"minio\"] # here\na=0\nb=5\n"
                       "[minio]\nc=6\n"};
  EXPECT_EQ(told(files), "a=1 b=3 c=4 ");
  EXPECT_EQ(told(files, "minio"), "a=2 b=5 ") << "the credentials first";
  EXPECT_EQ(told(files, "none"), "");
}

TEST(AwsFiles, add_the_services_that_a_profile_names) {
  const AwsFiles files{
      "", "[services x]\ns3 =\n  url = u\n[profile p]\nservices = x\n[profile q]\nservices = y\n"};
  EXPECT_EQ(told(files, "p"), "s3= s3.url=u services=x ");
  EXPECT_EQ(told(files, "q"), "services=y ");
}

TEST(AwsFiles, of_a_profile_say_the_same_in_few_bytes) {
  const AwsFiles files{"[other]\na=1\n[default]\na=2\n", "[default]\ns3 =\n  url = http://u\n", "gone"};
  const AwsFiles few = of_profile([](const std::string&) { return std::string(); }, files);
  EXPECT_EQ(few, (AwsFiles{"[default]\na=2\ns3=\ns3.url=http://u\n", "", "gone"}));
  EXPECT_EQ(told(few), told(files));
}

}  // namespace
}  // namespace tw::host
