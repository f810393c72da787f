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
  EXPECT_EQ(parse_address_option("--listen", "8080").error().message,
            "--listen 8080: expected HOST:PORT, such as 127.0.0.1:8080");
  EXPECT_EQ(parse_address_option("--join", "127.0.0.1:70000").error().message,
            "--join 127.0.0.1:70000: expected HOST:PORT");
  EXPECT_EQ(parse_address_option("--join", "").error().message, "--join : expected HOST:PORT");
  EXPECT_EQ(parse_address_option("--join", "node:7000").value(), "node:7000");
}

TEST(Threads, are_a_number_that_a_machine_may_have) {
  EXPECT_EQ(parse_threads_option("--threads", "1024").value(), 1024U);
  for (const std::string text : {"-1", "many", "1e2"})
    EXPECT_EQ(parse_threads_option("--threads", text).error().message,
              "--threads " + text + ": expected a whole number from 1 to 1024");
  EXPECT_EQ(parse_threads_option("--threads", "100000").error().message,
            "--threads 100000: expected a whole number from 1 to 1024, for example --threads 1024");
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

TEST(Site, is_a_place_of_64_bytes_at_most) {
  for (const std::string& text : {std::string("aws:us-east-1:a"), std::string("onprem:eu"), std::string(),
                                  "lab:" + std::string(60, 'x')}) {
    const auto site = parse_site_option("--site", text);
    ASSERT_TRUE(site) << text;
    EXPECT_EQ(site.value(), text);
  }
  for (const std::string& text :
       {"lab:" + std::string(61, 'x'), std::string("lab:my rack"), std::string("a:\nb")})
    EXPECT_EQ(
        parse_site_option("--site", text).error().message,
        "--site " + text +
            ": expected at most 64 letters, digits and signs without spaces, the same on all peers that "
            "share a local network, such as aws:us-east-1:a");
  for (const std::string text : {"foo", "aws-us-east-1", "a::", ":eu", "a:b:c:d"})
    EXPECT_EQ(parse_site_option("--site", text).error().message,
              "--site " + text +
                  ": not a site; expected PROVIDER:REGION or PROVIDER:REGION:ZONE, such as gcp:us-central1");
}

TEST(NoticesOption, names_a_source_or_a_file) {
  using Ask = spot::NoticeOptions::Ask;
  for (const auto& [text, ask] :
       {std::pair("auto", Ask::automatic), std::pair("aws", Ask::aws), std::pair("gcp", Ask::gcp),
        std::pair("azure", Ask::azure), std::pair("signal", Ask::signal), std::pair("none", Ask::none)}) {
    const auto read = parse_notices_option("--notices", text);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read.value().ask, ask) << text;
  }
  const auto file = parse_notices_option("--notices", "file:/run/a notice");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file.value().ask, Ask::file);
  EXPECT_EQ(file.value().path, "/run/a notice");
  EXPECT_EQ(
      parse_notices_option("--notices", "gpc").error().message,
      "--notices gpc: expected auto, aws, gcp, azure, signal, none or file:PATH; did you mean \"gcp\"?");
  for (const char* text : {"", "file:", "file:/", "AWS"})
    EXPECT_FALSE(parse_notices_option("--notices", text)) << text;
}

TEST(GraceOption, is_a_duration) {
  EXPECT_EQ(parse_grace_option("--grace", "2m").value(), std::chrono::minutes(2));
  for (const char* text : {"", "25", "0s", "999ms", "61m", "-5s"})
    EXPECT_EQ(parse_grace_option("--grace", text).error().message,
              OptionName("--grace").with(text) + ": expected a duration from 1s to 1h, such as 25s");
}

TEST(PriceOption, is_dollars_an_hour_or_nothing) {
  const OptionName option = OptionName("usd_per_h", '=');
  EXPECT_EQ(parse_price_option(option, "0.35").value(), 0.35);
  EXPECT_EQ(parse_price_option(option, "0").value(), 0.0);
  EXPECT_EQ(parse_price_option(option, "").value(), std::nullopt);
  for (const char* wrong : {"-1", "nan", "inf", "1e6", "cheap", "1 USD"}) {
    const auto price = parse_price_option(option, wrong);
    ASSERT_FALSE(price) << wrong;
    EXPECT_NE(price.error().message.find("expected USD an hour from 0 to 100000"), std::string::npos);
  }
}

}  // namespace
}  // namespace tw::peer
