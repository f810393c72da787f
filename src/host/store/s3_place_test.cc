// SPDX-License-Identifier: Apache-2.0
#include "host/store/s3_place.h"

#include <gmock/gmock.h>

#include <map>

namespace tw::host {
namespace {

using testing::HasSubstr;

Environment these(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) {
    const auto found = values.find(name);
    return found != values.end() ? found->second : std::string();
  };
}

S3Place placed(std::map<std::string, std::string> values, const std::string& file = "") {
  const auto place = s3_place(these(std::move(values)), file);
  EXPECT_TRUE(place) << place.error().message;
  return place ? place.value() : S3Place{};
}

std::string trouble(std::map<std::string, std::string> values, const std::string& file = "") {
  const auto place = s3_place(these(std::move(values)), file);
  return place ? "none" : place.error().message;
}

TEST(S3Place, is_that_of_the_region_where_nothing_else_is_said) {
  const S3Place place = placed({{"AWS_REGION", "eu-west-1"}});
  EXPECT_EQ(url_of(target_of(place, {"data", "run/x"})), "https://data.s3.eu-west-1.amazonaws.com/run/x");
  EXPECT_EQ(url_of(target_of(place, {"my.data", "x"})), "https://s3.eu-west-1.amazonaws.com/my.data/x");
  EXPECT_FALSE(place.credentials);
}

TEST(S3Place, has_the_bucket_in_the_path_at_another_endpoint) {
  const S3Place place = placed({{"AWS_ENDPOINT_URL", "http://10.0.0.1:7480/"}});
  EXPECT_EQ(url_of(target_of(place, {"data", "x"})), "http://10.0.0.1:7480/data/x");
  EXPECT_THAT(trouble({{"AWS_ENDPOINT_URL", "10.0.0.1"}}), HasSubstr("AWS_ENDPOINT_URL=10.0.0.1: expected"));
  EXPECT_THAT(trouble({{"AWS_ENDPOINT_URL", "http://a/b"}}), HasSubstr("expected http://HOST"));
}

TEST(S3Place, takes_credentials_of_the_environment_before_those_of_the_file) {
  const std::string file =
      "[default]\naws_access_key_id = A\naws_secret_access_key=B\n# no\n"
      "[other]\naws_access_key_id=C\naws_secret_access_key = D\naws_session_token=E\n";
  EXPECT_EQ(placed({}, file).credentials, (S3Credentials{"A", "B", ""}));
  EXPECT_EQ(placed({{"AWS_PROFILE", "other"}}, file).credentials, (S3Credentials{"C", "D", "E"}));
  EXPECT_EQ(placed({{"AWS_ACCESS_KEY_ID", "X"}, {"AWS_SECRET_ACCESS_KEY", "Y"}}, file).credentials,
            (S3Credentials{"X", "Y", ""}));
  EXPECT_EQ(trouble({{"AWS_PROFILE", "none"}}, file),
            "AWS_PROFILE=none: ~/.aws/credentials has no keys of this profile");
  EXPECT_EQ(trouble({{"AWS_ACCESS_KEY_ID", "X"}}), "AWS_ACCESS_KEY_ID is set without AWS_SECRET_ACCESS_KEY");
}

TEST(S3Place, reads_names_of_objects) {
  const auto key = [](const std::string& url) {
    const auto name = parse_s3(url);
    return name ? name.value().bucket + "|" + name.value().key : name.error().message;
  };
  EXPECT_EQ(key("s3://data/run/x"), "data|run/x");
  EXPECT_EQ(key("s3://data//run/"), "data|run");
  EXPECT_EQ(key("s3://data"), "data|");
  EXPECT_THAT(key("s3:///x"), HasSubstr("expected s3://BUCKET/KEY"));
  EXPECT_THAT(key("/x"), HasSubstr("/x: expected s3://"));
}

}  // namespace
}  // namespace tw::host
