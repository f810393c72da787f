// SPDX-License-Identifier: Apache-2.0
#include "peer/values.h"

#include <gtest/gtest.h>

namespace tw::peer {
namespace {

const OptionName kJoin("join", '=');

TEST(AddressOption, that_is_none_shows_a_right_one) {
  EXPECT_EQ(parse_address_option("--join", "10.0.0.5").error().message,
            "--join 10.0.0.5: expected HOST:PORT, such as 10.0.0.5:7000");
  EXPECT_EQ(parse_address_option(kJoin, "10.0.0.5").error().message,
            "join=10.0.0.5: expected HOST:PORT, such as 10.0.0.5:7000");
  EXPECT_EQ(parse_address_option("--join", "127.0.0.1:70000").error().message,
            "--join 127.0.0.1:70000: expected HOST:PORT");
  EXPECT_EQ(parse_address_option("--join", "").error().message, "--join : expected HOST:PORT");
  EXPECT_EQ(parse_address_option("--join", "node:7000").value(), "node:7000");
}

TEST(LogLimit, is_a_size_that_all_parts_share) {
  const auto limits = parse_log_limit("--log-limit", "256MiB");
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits.value().part_bytes * limits.value().parts, 256ULL << 20);
  for (const std::string text : {"", "much", "1KiB", "17GiB"})
    EXPECT_EQ(parse_log_limit("--log-limit", text).error().message,
              "--log-limit " + text + ": expected a size from 64 KiB to 16 GiB, such as 256MiB");
  EXPECT_EQ(parse_log_limit(OptionName("log_limit", '='), "1").error().message,
            "log_limit=1: expected a size from 64 KiB to 16 GiB, such as 256MiB");
}

TEST(Site, is_one_word_of_64_bytes_at_most) {
  for (const std::string& text : {std::string("aws:us-east-1:a"), std::string(), std::string(64, 'x')}) {
    const auto site = parse_site_option("--site", text);
    ASSERT_TRUE(site) << text;
    EXPECT_EQ(site.value(), text);
  }
  for (const std::string& text : {std::string(65, 'x'), std::string("my rack"), std::string("a\nb")})
    EXPECT_EQ(parse_site_option("--site", text).error().message,
              "--site " + text +
                  ": expected a name of at most 64 letters, digits and signs without spaces, the same on all "
                  "peers that share a local network, such as aws:us-east-1:a");
}

}  // namespace
}  // namespace tw::peer
